/**
 * Ignored findings against a model: random histories of checks, retries of old checks, ignores, their ends, assignments of the address to
 * the same and to another server, and passing time. After every step both servers show what the model says (NET-2.6.5).
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createWorld } from '#operations/testing/dated-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createFindingMonitor } from '#operations/testing/projection-of.ts';
import { createHistory, type History, steps } from './finding-history.ts';

export const name = 'finding-ignores';

/** Histories at a time, each of accounts of its own; so the database and this process work at once. */
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

/** Each forgets a part of what an ignore or a check is bound to. */
const bugs: readonly ((text: string) => string)[] = [
  (text) => text.replace('and i.fingerprint = f.fingerprint', ''),
  (text) => text.replace('and i.allocation_id = f.allocation_id', ''),
  (text) => text.replace('and i.cve_id = f.cve_id', ''),
  (text) => text.replace('and (i.until is null or i.until > (select svc_now()))', ''),
  (text) => text.replace("< checked_at then 'older'", "< checked_at and false then 'older'"),
];

export async function prove(options: Options) {
  await using world = await createWorld();
  const monitor = await createFindingMonitor(world);
  const histories: History[] = [];
  const lanes = Math.min(lanesMax, Math.ceil(options.n / 12));
  for (let lane = 0; lane < lanes; lane += 1) histories.push(await createHistory(world, monitor, lane));
  const vacuum = async () => {
    await world.database.pool.query(
      'vacuum analyze allocations, finding_projections, finding_services, findings, finding_ignores, known_findings',
    );
  };
  await vacuum();
  const failures = await run(histories, vacuum, options);
  let caught = 0;
  for (const bug of bugs) {
    using planted = plantSql(bug);
    const found = await run(histories, vacuum, { n: 60, seed: 7, report: () => {}, endOnFailure: true });
    if (found > 0 && planted.changed > 0) caught += 1;
    else options.report(`not noticed: ${bug}`);
  }
  return {
    claim:
      'an ignore holds for its account, server, assignment, port, version and CVE alone, and no retry brings back an older check',
    tried: options.n,
    failures,
    plantedBugsCaught: `${caught} of ${bugs.length}`,
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
        // Without a bias to short histories, in which nothing is inherited.
        fc.noBias(fc.array(steps, { minLength: 1, maxLength: 25, size: 'max' })),
        async (taken) => {
          done += 1;
          if (lane === 0 && done % vacuumEvery === 0) await vacuum();
          await history.reset();
          for (const step of taken) {
            await history.take(step);
            assert.deepEqual(await history.readBoth(), history.modelOfBoth(), JSON.stringify(taken));
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
