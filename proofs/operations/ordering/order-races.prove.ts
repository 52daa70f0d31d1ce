/** `npm run prove -- order-races`: rounds of orders at once, over nine pools (E3). */
import { proveRaces } from './race-proof.ts';

export const name = 'order-races';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveRaces(options);
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  const planted = await proveRaces({ n: 40, seed: options.seed, isUnlocked: true });
  options.report(`planted "look, then act": ${planted.faults[0] ?? 'NOT NOTICED'}`);
  return {
    claim:
      'fourteen orders at once, nine pools: the hourly cap is exact and none is made at $0.00 without credit',
    tried: result.rounds,
    failures: result.faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}
