import { createFleet } from './api-fleet.ts';
import type { PlantedBug } from './api-process.ts';
import { permutationFaults, readCounts, sendTraffic } from './count-proof.ts';

export interface ExactCountOptions {
  requests: number;
  processes: number;
  isDurable: boolean;
  bug?: PlantedBug;
}

/** D1: the numbers of all answers of all processes are 1 to N, each once, and keys and days add up to them. */
export async function proveExactCount(
  options: ExactCountOptions,
): Promise<{ tried: number; faults: string[] }> {
  await using fleet = await createFleet({
    processes: options.processes,
    keys: 25,
    isDurable: options.isDurable,
    bug: options.bug ?? null,
  });
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
