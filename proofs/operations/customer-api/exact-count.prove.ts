/** `npm run prove -- exact-count`: D1 with N requests over four processes on a durable database. */
import { proveExactCount } from './prove-exact-count.ts';

export const name = 'exact-count';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const setting = { processes: 4, isDurable: true };
  const { tried, faults } = await proveExactCount({ ...setting, requests: options.n });
  for (const fault of faults) options.report(`FAULT ${fault}`);
  const bugs = ['read then write', 'own numbers'] as const;
  let caught = 0;
  for (const bug of bugs) {
    const planted = await proveExactCount({ ...setting, requests: 4_000, bug });
    if (planted.faults.length > 0) caught += 1;
    options.report(`planted "${bug}": ${planted.faults[0] ?? 'NOT CAUGHT'}`);
  }
  return {
    claim:
      'X-Api-Quota-Used over 4 processes, 25 keys, 100 connections is a permutation of 1..N; keys and days add up',
    tried,
    failures: faults.length,
    plantedBugsCaught: `${caught} of ${bugs.length}`,
  };
}
