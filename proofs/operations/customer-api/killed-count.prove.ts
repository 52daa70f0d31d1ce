/** `npm run prove -- killed-count`: D2 with N kills of processes and of the database. */
import { proveKilledCount } from './prove-killed-count.ts';

export const name = 'killed-count';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveKilledCount({ kills: options.n, seed: options.seed, report: options.report });
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  const planted = await proveKilledCount({
    kills: 24,
    seed: options.seed,
    bug: 'acknowledge early',
    report: options.report,
  });
  options.report(`planted "acknowledge early": ${planted.faults[0] ?? 'NOT CAUGHT'}`);
  return {
    claim: `numbered answers ≤ count ≤ requests, no number twice (${result.sent} requests, ${result.numbered} numbered)`,
    tried: result.kills,
    failures: result.faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}
