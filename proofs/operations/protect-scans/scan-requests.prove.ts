/**
 * Scan requests against a model: random histories of clicks, automatic requests, claims, starts, withdrawals, results, views off
 * and on, and passing time. After every step the stored states are what the model says, which is written from NET-3.1 and
 * knows nothing of the table of transitions.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createWorld } from '#operations/testing/create-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createHistory, steps } from './scan-history.ts';

export const name = 'scan-requests';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const failures = await run(options);
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

async function run(options: { n: number; seed: number; report: (line: string) => void }): Promise<number> {
  await using world = await createWorld();
  const history = await createHistory(world);
  const property = fc.asyncProperty(
    // Without a bias to short histories, in which nothing comes after an end.
    fc.noBias(fc.array(steps, { minLength: 1, maxLength: 25, size: 'max' })),
    async (taken) => {
      await history.reset();
      for (const step of taken) {
        await history.take(step);
        assert.deepEqual(await history.readStates(), history.modelStates(), JSON.stringify(taken));
      }
    },
  );
  const outcome = await fc.check(property, { numRuns: options.n, seed: options.seed });
  if (outcome.failed) options.report(fc.defaultReportMessage(outcome) ?? 'failed');
  return outcome.failed ? 1 : 0;
}

/** Whether the proof fails when this changes a statement. */
async function isCaught(change: (text: string) => string): Promise<boolean> {
  using _ = plantSql(change);
  return (await run({ n: 40, seed: 7, report: () => {} })) > 0;
}
