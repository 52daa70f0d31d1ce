/**
 * Scan requests against a model: random histories of clicks, automatic requests, claims, starts, withdrawals, results, views off
 * and on, and passing time. After every step the stored states are what the model says, which is written from NET-3.1 and
 * knows nothing of the table of transitions.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createHistory, type History, steps } from './scan-history.ts';

export const name = 'scan-requests';

/** Histories at a time, each of an account of its own; so the database and this process work at once. */
const lanesMax = 6;
/** Histories of a lane between two vacuums: the tests' server has no autovacuum, and dead rows are read again and again. */
const vacuumEvery = 50;

interface Options {
  n: number;
  seed: number;
  report: (line: string) => void;
  /** Looks for no shorter history after a failure. */
  endOnFailure?: boolean;
}

export async function prove(options: Options) {
  await using world = await createWorld();
  const monitor = await createScanMonitor(world);
  const histories: History[] = [];
  const lanes = Math.min(lanesMax, Math.ceil(options.n / 12));
  for (let lane = 0; lane < lanes; lane += 1) histories.push(await createHistory(world, monitor));
  const vacuum = async () => {
    await world.database.pool.query(
      'vacuum analyze scan_requests, port_scan_series, port_scans, port_observations',
    );
  };
  await vacuum();
  const failures = await run(histories, vacuum, options);
  /** Whether the proof fails when this changes a statement. */
  const isCaught = async (change: (text: string) => string): Promise<boolean> => {
    using _ = plantSql(change);
    return (await run(histories, vacuum, { n: 48, seed: 7, report: () => {}, endOnFailure: true })) > 0;
  };
  const caught = [
    await isCaught((text) => text.replace('and expires_at <= svc_now() and', 'and false and')),
    await isCaught((text) =>
      text.replace(/(where state = any\(\$1::text\[\]\)\s+and kind = \$2)/, '$1 and false'),
    ),
    await isCaught((text) =>
      text.replace(/coalesce\(\(select greatest\(0, ceil/, 'coalesce((select 0 * greatest(0, ceil'),
    ),
  ];
  return {
    claim: 'scan requests move as NET-3.1 says, over clicks, monitors, results, switches and passing time',
    tried: options.n,
    failures,
    plantedBugsCaught: `${caught.filter(Boolean).length} of ${caught.length}`,
  };
}

/** Shares the histories out; returns how many lanes found a fault. */
async function run(
  histories: readonly History[],
  vacuum: () => Promise<void>,
  { n, seed, report, endOnFailure = false }: Options,
): Promise<number> {
  const failed = await Promise.all(
    histories.map(async (history, lane) => {
      const numRuns = Math.floor((n + lane) / histories.length);
      let done = 0;
      const property = fc.asyncProperty(
        // Without a bias to short histories, in which nothing comes after an end.
        fc.noBias(fc.array(steps, { minLength: 1, maxLength: 25, size: 'max' })),
        async (taken) => {
          done += 1;
          if (lane === 0 && done % vacuumEvery === 0) await vacuum();
          await history.reset();
          for (const step of taken) {
            await history.take(step);
            assert.deepEqual(await history.readStates(), history.modelStates(), JSON.stringify(taken));
          }
        },
      );
      const outcome = await fc.check(property, { numRuns, seed: seed * 1_000 + lane, endOnFailure });
      if (outcome.failed) report(fc.defaultReportMessage(outcome) ?? 'failed');
      return outcome.failed;
    }),
  );
  return failed.filter(Boolean).length;
}
