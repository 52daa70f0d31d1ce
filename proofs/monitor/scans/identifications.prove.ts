/**
 * What scans identified against a model: random histories of scans of both profiles that end at any of their states and arrive in
 * any order. After each one every service is known as what the newest scan that asked it read, with the time of that scan.
 */
import { seededRandom } from '#common/random/index.ts';
import { makeScan, randomHistory } from '#contracts/port-scan/testing/interrupted-scans.ts';
import { createHistoryTaker } from '#monitor/scans/testing/identification-histories.ts';
import { startScanStage } from '#monitor/scans/testing/scan-world.ts';

export const name = 'scan-identifications';

const plants = [
  'delete from scan_identifications',
  'update scan_identifications set identified_at = svc_now()',
  "update scan_identifications set version = 'another one'",
];

export interface IdentificationsOptions {
  /** Number of histories. */
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: IdentificationsOptions) {
  await using stage = await startScanStage();
  const take = await createHistoryTaker(stage);
  const random = seededRandom(seed);
  let failures = 0;
  for (let tried = 1; tried <= n; tried += 1) {
    const history = randomHistory(random, Date.now());
    const faults = await take(history);
    if (faults.length > 0) failures += 1;
    for (const fault of faults) report(`${history.name}: ${fault}`);
    if (tried % 500 === 0) report(`${tried} histories, ${failures} failures`);
  }
  const whole = { name: 'planted', scans: [makeScan('complete', 'full', Date.now() - 60_000)] };
  let caught = 0;
  for (const fault of plants) if ((await take(whole, fault)).length > 0) caught += 1;
  return {
    claim:
      'what a scan identified stays with its time until a newer one identifies it, wherever scans end and in any order',
    tried: n,
    failures,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}
