/**
 * `npm run prove -- scan-faults`: the port-scan feed alone, under the faults of `feed-faults`, with requests that are claimed,
 * started, cancelled and reported late, lists from replicas that are behind, a permission that comes and goes, and a
 * connection that changes. `--n` is the number of faults on the way of results.
 */
import { deliveryFaults } from './fault-proxy.ts';
import { runFeeds } from './feed-faults.prove.ts';
import { scanPlants } from './plant-scans.ts';

export const name = 'scan-faults';

const feeds = ['port-scans'] as const;
const plants = ['acknowledged_without_storing', 'values_changed', ...scanPlants] as const;

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: Options) {
  const { faults, offences, rounds } = await runFeeds({ n, seed, plant: null, feeds, report });
  for (const offence of offences.slice(0, 20)) report(offence);
  let caught = 0;
  for (const plant of plants) {
    const found = await runFeeds({ n: Math.min(n, 400), seed, plant, feeds, report: () => {} });
    report(`planted ${plant}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `scan requests and results of scans are at operations as the monitor knows them, and none that has ended comes back, after each of ${rounds} rounds of ${deliveryFaults.length} kinds of faults`,
    tried: faults,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}
