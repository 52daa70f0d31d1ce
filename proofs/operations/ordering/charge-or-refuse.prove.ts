/** `npm run prove -- charge-or-refuse`: orders that want the same thing at once are charged or refused, never both. */
import { contestFaults, proveContests } from './contest-proof.ts';

export const name = 'charge-or-refuse';

/** Enough rounds for each planted bug to meet the contest that shows it. */
const plantedRounds = 60;

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveContests(options);
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  let caught = 0;
  for (const fault of contestFaults) {
    const { faults } = await proveContests({ n: plantedRounds, seed: options.seed, fault });
    options.report(`planted "${fault}": ${faults[0] ?? 'NOT NOTICED'}`);
    if (faults.length > 0) caught += 1;
  }
  return {
    claim: `orders that want one thing at once: what is refused was not charged, what is charged is made or given back, nothing stays held (${result.made} made, ${result.refused} refused, ${result.deaths} processes died)`,
    tried: result.rounds,
    failures: result.faults.length,
    plantedBugsCaught: `${caught} of ${contestFaults.length}`,
  };
}
