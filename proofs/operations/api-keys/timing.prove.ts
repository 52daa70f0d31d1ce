/** `npm run prove -- timing`: G2 in process with N verdicts of each kind of refusal. */
import { proveTiming, refusalClasses } from './prove-timing.ts';

export const name = 'timing';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveTiming({ perClass: options.n, random: Math.random });
  const planted = await proveTiming({ perClass: options.n, isPlanted: true, random: Math.random });
  options.report(`worst |t| ${result.worst.toFixed(2)} between ${result.pair}`);
  options.report(`planted early return: |t| ${planted.worst.toFixed(1)} between ${planted.pair}`);
  return {
    claim: `time tells no two of ${refusalClasses.length} refusals apart: |t| ${result.worst.toFixed(2)} at most, below 4.5`,
    tried: result.tried,
    failures: result.worst < 4.5 ? 0 : 1,
    plantedBugsCaught: `${planted.worst > 10 ? 1 : 0} of 1 (|t| ${planted.worst.toFixed(0)})`,
  };
}
