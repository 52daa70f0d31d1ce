/** `npm run prove -- exact-count`: N requests over four processes on a durable database. */
import { createFleet } from './api-fleet.ts';
import { permutationFaults, readCounts, sendTraffic } from './count-proof.ts';

export const name = 'exact-count';

export async function prove(options: { n: number; report: (line: string) => void }) {
  const setting = { processes: 4, isDurable: true, requests: options.n };
  const { tried, faults } = await proveExactCount(setting);
  for (const fault of faults) options.report(`FAULT ${fault}`);
  return {
    claim:
      'X-Api-Quota-Used over 4 processes, 25 keys, 100 connections is a permutation of 1..N; keys and days add up',
    tried,
    failures: faults.length,
  };
}

/** The numbers of all answers of all processes are 1 to N, each once, and keys and days add up to them. */
export async function proveExactCount(options: {
  requests: number;
  processes: number;
  isDurable: boolean;
}): Promise<{ tried: number; faults: string[] }> {
  await using fleet = await createFleet({ ...options, keys: 25 });
  const traffic = await sendTraffic(fleet, 100, ({ sent }) => sent >= options.requests);
  const counts = await readCounts(fleet);
  const total = counts.months.reduce((sum, count) => sum + count, 0);
  const faults = permutationFaults(traffic.numbers, 0, traffic.sent);
  if (traffic.unnumbered + traffic.lost > 0)
    faults.push(`${traffic.unnumbered} answers without a number, ${traffic.lost} lost`);
  if (total !== traffic.sent) faults.push(`the account's row says ${total} of ${traffic.sent}`);
  if (counts.keys !== total) faults.push(`the keys' rows say ${counts.keys} of ${total}`);
  if (counts.days !== total) faults.push(`the days' rows say ${counts.days} of ${total}`);
  return { tried: traffic.sent, faults };
}
