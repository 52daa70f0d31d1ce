/**
 * `npm run prove -- audit`: every route that changes something leaves its entry, and each call that writes one is missed
 * when it is taken out of the source. `--n` bounds the calls that are taken out; 1000 is all of them.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createRandom } from '#operations/surfaces/customer-api/testing/random.ts';
import { findRecordCalls, nameOf } from '#service-kit/audit/testing/record-calls.ts';
import { judgeAll } from './judge.ts';
import { createStage } from './stage.ts';

export const name = 'audit';

const plantedProcess = fileURLToPath(new URL('./planted-process.ts', import.meta.url));

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  await using stage = await createStage();
  const { routes, faults } = await judgeAll(stage);
  for (const fault of faults) options.report(fault);
  const calls = findRecordCalls('operations');
  const indexes = createRandom(options.seed).shuffle(calls.map((_, index) => index));
  let caught = 0;
  const tried = indexes.slice(0, options.n);
  for (const index of tried) {
    const { stdout, stderr } = spawnSync(process.execPath, [plantedProcess, String(index)], {
      encoding: 'utf8',
    });
    const seen = stdout.trim() === '' ? null : (JSON.parse(stdout.trim()) as string[]);
    const told = seen === null ? `DID NOT RUN: ${stderr.slice(-300)}` : (seen[0] ?? 'NOT NOTICED');
    options.report(`without ${nameOf(calls[index]!)}: ${told}`);
    if (seen !== null && seen.length > 0) caught += 1;
  }
  return {
    claim: `each of ${routes} routes that change something leaves its entry in the audit trail or stands in the list of exceptions`,
    tried: routes,
    failures: faults.length,
    plantedBugsCaught: `${caught} of ${tried.length} calls (${calls.length} in all)`,
  };
}
