/** `npm run prove -- spoofing`: schedules of a lab in which one guest also sends from another's addresses and MAC, and these addresses move to a third guest. */
import { proveSpoofing } from './testing/spoofing-proof.ts';

export const name = 'spoofing';

export async function prove({
  n,
  seed,
  report,
}: {
  n: number;
  seed: number;
  report: (line: string) => void;
}) {
  const { faults, spoofedBytes } = await proveSpoofing({ n, seed });
  for (const fault of faults) report(`FAULT ${fault}`);
  // Without owners the spoofed bytes are taken for the owner's: the comparison has to see it.
  const planted = await proveSpoofing({ n: 1, seed, guarded: false });
  return {
    claim: `the bytes of an address equal nftables' at its own guest's port while another guest sends from it, with its own, the owner's former and no guest's MAC, and while the address moves; spoofed bytes are counted as such, to the byte (${spoofedBytes})`,
    tried: n,
    failures: faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}
