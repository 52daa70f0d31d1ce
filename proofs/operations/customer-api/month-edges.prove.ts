/** `npm run prove -- month-edges`: D4 with N requests over each of twelve ends of a month. */
import { proveMonthEdges } from './prove-month-edges.ts';

export const name = 'month-edges';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const { tried, faults } = await proveMonthEdges({
    months: 12,
    requestsPerEdge: options.n,
    report: options.report,
  });
  const planted = await proveMonthEdges({ months: 1, requestsPerEdge: 200, bug: 'own clock' });
  options.report(`planted "own clock": ${planted.faults[0] ?? 'NOT CAUGHT'}`);
  for (const fault of faults) options.report(`FAULT ${fault}`);
  return {
    claim:
      'over 12 ends of a month, clocks of the processes wrong by ±3 s, each request is counted once, in the database’s month',
    tried,
    failures: faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}
