/** Rounds of clicks at once from several processes, and what must hold after each. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { World } from '#operations/testing/create-world.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { createRandom } from '#proofs/operations/customer-api/random.ts';
import type { ClickAnswer } from './scan-worker.ts';

interface Worker {
  child: ChildProcessByStdio<Writable, Readable, null>;
  lines: AsyncIterator<string>;
  reader: Interface;
}

const servers = 4;
/** So three servers fit into the account's 100 addresses, and the fourth does not. */
const addressesOfServer = 32;
const workerFile = fileURLToPath(new URL('./scan-worker.ts', import.meta.url));

export async function createScanClicks(
  world: World,
  { processes, seed, bug }: { processes: number; seed: number; bug: string | null },
) {
  const random = createRandom(seed);
  const customer = await world.createCustomer('Clicks');
  const serverIds: number[] = [];
  for (let index = 0; index < servers; index += 1) {
    const { serverId, allocations } = await world.deploy(customer.tenant, `clicked-${index}`);
    serverIds.push(serverId);
    await world.database.pool.query(
      `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
       select pool_id, cluster_id, tenant_id, server_id, '198.51.100.0'::inet + ($3::int * 50 + n), prefix_length,
         gateway, false
       from allocations, generate_series(1, $2::int) n where id = $1`,
      [allocations[0]!.id, addressesOfServer - allocations.length, index],
    );
  }
  const workers = await Promise.all(
    Array.from({ length: processes }, () => startWorker(world.database.url, bug)),
  );
  const actor = ownerOf(customer);

  /** An older request of some servers, which has ended; returns the servers that it keeps from another. */
  async function begin(): Promise<Set<number>> {
    await world.database.pool.query('delete from scan_requests');
    const cooling = new Set<number>();
    for (const serverId of serverIds) {
      const choice = random.below(4);
      if (choice > 1) continue;
      if (choice === 0) cooling.add(serverId);
      await world.database.pool.query(
        `insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address, state, requested_at,
           finished_at)
         select 'manual', min(id), min(cluster_id), min(tenant_id), server_id, 'x', 'complete',
           svc_now() - $2::interval, svc_now() from allocations where server_id = $1 group by server_id`,
        [serverId, choice === 0 ? '9 minutes 30 seconds' : '10 minutes 1 second'],
      );
    }
    return cooling;
  }

  return {
    /** What went wrong, or null. */
    async round(): Promise<string | null> {
      const cooling = await begin();
      const sent = workers.map((worker) => ({
        worker,
        clicks: Array.from({ length: 1 + random.below(4) }, () => serverIds[random.below(servers)]!),
      }));
      for (const { worker, clicks } of sent)
        worker.child.stdin.write(
          clicks.map((serverId) => `${JSON.stringify({ actor, serverId })}\n`).join(''),
        );
      const answers: ClickAnswer[] = [];
      for (const { worker, clicks } of sent)
        for (const _ of clicks) answers.push(JSON.parse((await worker.lines.next()).value) as ClickAnswer);
      const { rows } = await world.database.pool.query<{ serverId: number; count: number }>(
        `select server_id as "serverId", count(*)::int as count from scan_requests where finished_at is null
         group by server_id`,
      );
      return judge(answers, new Map(rows.map((row) => [Number(row.serverId), row.count])), cooling);
    },
    async [Symbol.asyncDispose]() {
      for (const { child } of workers) child.stdin.end();
      await Promise.all(
        workers.map(
          ({ child }) =>
            new Promise((done) => (child.exitCode === null ? child.once('exit', done) : done(0))),
        ),
      );
    },
  };
}

function judge(
  answers: readonly ClickAnswer[],
  pending: ReadonlyMap<number, number>,
  cooling: ReadonlySet<number>,
): string | null {
  const total = [...pending.values()].reduce((sum, count) => sum + count, 0);
  if (total > 100) return `${total} pending addresses`;
  const clicked = new Set(answers.map(({ serverId }) => serverId));
  const allowed = [...clicked].filter((serverId) => !cooling.has(serverId));
  const expected = Math.min(allowed.length, Math.floor(100 / addressesOfServer));
  if (pending.size !== expected) return `${pending.size} servers with requests and not ${expected}`;
  for (const serverId of clicked) {
    const outcomes = answers.filter((each) => each.serverId === serverId).map(({ outcome }) => outcome);
    const count = pending.get(serverId) ?? 0;
    if (count !== 0 && count !== addressesOfServer) return `server ${serverId} has ${count} requests`;
    const news = outcomes.filter((outcome) => outcome === 'new').length;
    if (news !== (count === 0 ? 0 : 1)) return `server ${serverId} has ${news} new sets`;
    const refusal = cooling.has(serverId) ? 'cooldown' : 'limit_exceeded';
    const others = new Set(outcomes.filter((outcome) => outcome !== 'new'));
    others.delete(count === 0 ? refusal : 'pending');
    if (others.size > 0) return `server ${serverId}: ${[...others].join(', ')}`;
  }
  return null;
}

async function startWorker(databaseUrl: string, bug: string | null): Promise<Worker> {
  const child = spawn(process.execPath, [workerFile, databaseUrl, ...(bug === null ? [] : [bug])], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const reader = createInterface({ input: child.stdout });
  const lines = reader[Symbol.asyncIterator]();
  await lines.next();
  return { child, lines, reader };
}
