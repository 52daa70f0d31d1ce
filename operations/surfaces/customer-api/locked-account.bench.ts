/**
 * What one locked account costs the others: the rate at which 24 accounts are answered, with every row free and with the
 * 25th account's month locked by another transaction while that account keeps calling. Rounds in turn, in one process.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { createWorld } from '#operations/testing/create-world.ts';
import type { LoadOrder, LoadResult } from './testing/worker.ts';

export const name = 'locked-account';

const rounds = 5;
const accounts = 24;
const connections = 100;
/** Of the locked account. */
const stuckConnections = 10;

export async function run(report: (line: string) => void): Promise<void> {
  await using world = await createWorld({ requestsPerMinute: 10_000_000 });
  const keys: string[] = [];
  for (let n = 0; n < accounts; n += 1)
    keys.push(await world.createKey(await world.createCustomer(`Bench ${n}`)));
  const stuck = await world.createCustomer('Locked');
  const stuckKey = await world.createKey(stuck);
  const port = Number(new URL(world.url).port);
  const [others, one] = [newWorker(), newWorker()];
  const load = (worker: Worker, of: readonly string[], many: number, durationMs: number) =>
    ask(worker, {
      port,
      paths: ['/api/v2/key'],
      headers: of.map((key) => ({ authorization: `Bearer ${key}` })),
      connections: many,
      status: 200,
      warmUpMs: 500,
      durationMs,
    });
  const measure = async (isLocked: boolean) => {
    const ofOthers = load(others, keys, connections, 3_000);
    if (isLocked) await load(one, [stuckKey], stuckConnections, 2_500);
    return ofOthers;
  };
  await measure(false);
  const rates = { free: [] as number[], locked: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    rates.free.push(await measure(false));
    const client = await world.database.pool.connect();
    await client.query('begin');
    await client.query('select 1 from usage_months where tenant_id = $1 for update', [stuck.tenant.id]);
    rates.locked.push(await measure(true));
    await client.query('rollback');
    client.release();
  }
  await Promise.all([others.terminate(), one.terminate()]);
  const ratios = rates.locked.map((rate, round) => rate / rates.free[round]!);
  report(`${accounts} accounts, every row free:          ${Math.round(median(rates.free))} requests/s`);
  report(`the same beside one locked account:   ${Math.round(median(rates.locked))} requests/s`);
  report(`ratio (median of ${rounds} rounds):          ${median(ratios).toFixed(2)}`);
}

const newWorker = () => new Worker(new URL('./testing/worker.ts', import.meta.url));

async function ask(worker: Worker, order: LoadOrder): Promise<number> {
  const answered = once(worker, 'message');
  worker.postMessage(order);
  const [result] = (await answered) as [LoadResult];
  if (result.failures > 0) throw new Error(`${result.failures} of ${result.answers} answers were not 200`);
  return result.answers / result.seconds;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
