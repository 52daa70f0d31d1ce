/** `npm run prove -- overage`: as many schedules of overage charging as are asked for (D5, D6, D7). */
import { proveOverage } from './overage-proof.ts';

export const name = 'overage';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveOverage(options);
  for (const failure of result.failures) options.report(failure);
  return {
    claim: 'any schedule of ticks, kills, months and settings charges the one rounded-down sum of each month',
    tried: result.tried,
    failures: result.failures.length,
    plantedBugsCaught: `${result.planted.caught} of ${result.planted.of}`,
  };
}
