/**
 * A ClickHouse that holds the facts is killed before and after it stores an insert, is away for a while, stands still for longer than
 * an insert may take, is full or read-only, and workers are killed, while sensors send. Nothing may be lost and nothing doubled.
 */
import { seededRandom } from '#common/random/index.ts';
import {
  type EngineCommand,
  type HttpEngine,
  startHttpEngine,
} from '#monitor/facts/clickhouse/testing/start-http-engine.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { createFleet, type Fleet } from './ingest-fleet.ts';

export const name = 'facts-engine-faults';

interface EngineFaultOptions {
  /** Faults. */
  n: number;
  seed: number;
  report(line: string): void;
}

/** For each fault. */
const uploadsOfFault = 200;

const kinds = {
  killed_before: 5,
  killed_after: 5,
  away: 2,
  stands_still: 1,
  disk_full: 2,
  read_only: 2,
  too_many_parts: 2,
  worker_killed: 3,
} as const;
type FaultKind = keyof typeof kinds;

const refusals: Partial<Record<FaultKind, { code: number; name: string }>> = {
  disk_full: { code: 243, name: 'NOT_ENOUGH_SPACE' },
  read_only: { code: 164, name: 'READONLY' },
  too_many_parts: { code: 252, name: 'TOO_MANY_PARTS' },
};

/** Longer than an insert may take. */
const stillMs = 11_000;
/** Of a batch, the inserts before the one that is hit. */
const insertsOfBatch = 5;
/** An engine without inserts meets no fault. */
const faultWaitMs = 3_000;

export async function prove(options: EngineFaultOptions) {
  const { offences, counts } = await breakEngine(options);
  for (const offence of offences) options.report(offence);
  options.report(JSON.stringify(counts));
  return {
    claim: `${options.n * uploadsOfFault} uploads while ClickHouse is killed, away, frozen, full and read-only, and workers are killed: 0 lost, 0 doubled`,
    tried: options.n,
    failures: offences.length,
  };
}

/** Makes `n` faults while uploads come in, lets all settle, and returns what is wrong. */
async function breakEngine({ n, seed, report }: EngineFaultOptions) {
  const random = seededRandom(seed);
  await using database = await createTestDatabase('monitor');
  await using engine = await startHttpEngine();
  await using fleet = await createFleet({
    ...{ database, workerUrl: database.url, sensors: 50, workers: 2, leaseSeconds: 12, random },
    factsUrl: engine.url,
  });
  const counts: Partial<Record<FaultKind, number>> = {};
  for (let fault = 1; fault <= n; fault += 1) {
    const kind = pick(random);
    counts[kind] = (counts[kind] ?? 0) + 1;
    const sending = fleet.send(uploadsOfFault);
    await strike(kind, engine, fleet, random);
    await sending;
    if (fault % 25 === 0) report(`${fault} faults, ${fault * uploadsOfFault} uploads`);
  }
  const isSettled = await fleet.settle(900_000);
  return {
    offences: [...(isSettled ? [] : ['uploads were left unapplied']), ...(await fleet.judge())],
    counts,
  };
}

function pick(random: () => number): FaultKind {
  const all = Object.entries(kinds) as [FaultKind, number][];
  let left = random() * all.reduce((sum, [, weight]) => sum + weight, 0);
  return all.find(([, weight]) => {
    left -= weight;
    return left < 0;
  })![0];
}

const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms));

async function strike(
  kind: FaultKind,
  engine: HttpEngine,
  fleet: Fleet,
  random: () => number,
): Promise<void> {
  const after = Math.floor(random() * insertsOfBatch * 2);
  const tell = (fault: Omit<Extract<EngineCommand, { kind: 'fault' }>, 'kind'>) =>
    engine.tell({ kind: 'fault', ...fault });
  if (kind === 'worker_killed') {
    await pause(random() * 1000);
    fleet.replace(fleet.workers[Math.floor(random() * fleet.workers.length)]!);
  } else if (kind === 'away') {
    await engine.kill();
    await pause(random() * 3000);
    await engine.restart();
  } else if (kind === 'stands_still') {
    tell({ how: 'frozen', after });
    const isHit = await Promise.race([
      engine.frozen().then(() => true),
      pause(faultWaitMs).then(() => false),
    ]);
    if (isHit) await pause(stillMs);
    engine.tell({ kind: 'thawed' });
  } else if (kind === 'killed_before' || kind === 'killed_after') {
    tell({ how: kind === 'killed_before' ? 'killed before' : 'killed after', after });
    await Promise.race([engine.ended(), pause(faultWaitMs)]);
    // Where no insert came that late, the fault is made now.
    await engine.kill();
    await engine.restart();
  } else tell({ how: 'refused', after, error: refusals[kind]! });
}
