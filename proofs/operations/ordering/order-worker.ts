/**
 * A process that orders servers until it is killed: `order-worker.ts DATABASE_URL STRIPE_URL [PAYS_TWICE]`. It reads one
 * order a line, `{tenantId, killAt}`, and answers with one line each; at `killAt` it ends itself with SIGKILL.
 */
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createCrashingOrdering, type KillPoint } from './crash-injection.ts';

export interface OrderRequest {
  tenantId: number;
  killAt: KillPoint | null;
}

export interface OrderAnswer {
  tenantId: number;
  /** `201`, the reason of a 402, or another error's code. */
  answer: string;
}

async function run(databaseUrl: string, stripeUrl: string, paysTwice: boolean): Promise<void> {
  const worker = createCrashingOrdering(databaseUrl, stripeUrl, {
    paysTwice,
    die: () => process.kill(process.pid, 'SIGKILL'),
  });
  process.stdout.write('ready\n');
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line) as OrderRequest;
    const answer = await worker.order(request.tenantId, request.killAt);
    process.stdout.write(`${JSON.stringify({ tenantId: request.tenantId, answer } satisfies OrderAnswer)}\n`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await run(process.argv[2]!, process.argv[3]!, process.argv[4] !== undefined);
