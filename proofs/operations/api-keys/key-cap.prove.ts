/** `npm run prove -- key-cap`: G7 with N rounds of 100 creates at once at 24 active keys, and the notes of use. */
import { createWorld } from '#operations/testing/dated-world.ts';
import { isCapMissed, isNoteMissed, proveKeyCap, proveUseNotes } from './prove-key-cap.ts';

export const name = 'key-cap';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  await using world = await createWorld();
  const result = await proveKeyCap(world, { rounds: options.n, atOnce: 100 });
  const notes = await proveUseNotes(world, 1_000);
  options.report(`1,000 uses at once were noted ${notes} time(s)`);
  const caught = [await isCapMissed(), await isNoteMissed()];
  return {
    claim: `never more than 25 active keys, exactly one of 100 creates at once wins; 1,000 uses within a minute are ${notes} write`,
    tried: result.tried,
    failures: result.passed + result.wrongWins + (notes === 1 ? 0 : 1),
    plantedBugsCaught: `${caught.filter(Boolean).length} of 2`,
  };
}
