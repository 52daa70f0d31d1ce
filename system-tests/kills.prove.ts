/** `npm run prove -- kills`: the kill proof with the requested number of kills. */
import { proveKills } from './testing/kill-proof.ts';

export const name = 'kills';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveKills({ ...options, scansPorts: true });
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  return {
    claim: `every minute equals nftables or is an exact gap (${result.equal} equal, ${result.gaps} gaps)`,
    tried: result.kills,
    failures: result.faults.length,
    plantedBugsCaught: `${result.planted.caught} of ${result.planted.of}`,
  };
}
