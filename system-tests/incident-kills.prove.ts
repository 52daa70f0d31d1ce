/** `npm run prove -- incident-kills`: floods of the lab while programs and databases are killed. */
import { proveIncidentKills } from './testing/incident-kill-proof.ts';

export const name = 'incident-kills';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveIncidentKills(options);
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  return {
    claim: `every flood is one incident at the monitor and in operations, of its class and times, and ends only by recovery (${result.floods} floods)`,
    tried: result.kills,
    failures: result.faults.length,
    plantedBugsCaught: `${result.planted.caught} of ${result.planted.of}`,
  };
}
