/**
 * Clicks on "Request port scan now" from four processes at once: each server gets one set of requests, the cooldown holds, and
 * an account never has more than 100 pending addresses (NET-8.1).
 */
import { createWorld } from '#operations/testing/create-world.ts';
import { createScanClicks } from './scan-clicks.ts';

export const name = 'scan-limits';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const failures = await run(options, null);
  const caught = [
    (await run({ ...options, n: 6, report: () => {} }, 'no lock')) > 0,
    (await run({ ...options, n: 6, report: () => {} }, 'no cooldown')) > 0,
  ];
  return {
    claim: 'clicks in four processes make one set of requests for each server, within cooldown and limits',
    tried: options.n,
    failures,
    plantedBugsCaught: `${caught.filter(Boolean).length} of ${caught.length}`,
  };
}

async function run(
  { n, seed, report }: { n: number; seed: number; report: (line: string) => void },
  bug: 'no lock' | 'no cooldown' | null,
): Promise<number> {
  await using world = await createWorld();
  await using clicks = await createScanClicks(world, { processes: 4, seed, bug });
  let failures = 0;
  for (let round = 0; round < n; round += 1) {
    const fault = await clicks.round();
    if (fault === null) continue;
    failures += 1;
    report(`round ${round}: ${fault}`);
  }
  return failures;
}
