/**
 * Clicks on "Request port scan now" from four processes at once: each server gets one set of requests, the cooldown holds, and
 * an account never has more than 100 pending addresses (NET-8.1).
 *
 * Schedules by chance run on several accounts beside one another. A few are forced: their clicks have all read what is pending
 * before one of them stores anything. So a planted bug is caught by its schedule, and not by luck.
 */
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanClicks, forcedPlans, type ScanClicks } from './scan-clicks.ts';
import type { Bug } from './scan-worker.ts';
import { type ScanWorkers, startScanWorkers } from './scan-workers.ts';

export const name = 'scan-limits';

type Report = (line: string) => void;

const processes = 4;
const accountsMax = 4;
/** Rounds of an account between two vacuums: the tests' server has no autovacuum, and dead rows are read again and again. */
const vacuumEvery = 25;

/** Each with a schedule that catches it. */
const bugs: readonly [bug: Bug, plan: string][] = [
  ['no lock', 'one server, clicked in all processes'],
  ['no lock of the account', 'a server for each process'],
  ['no cooldown', 'a server in its cooldown'],
];

export async function prove({ n, seed, report }: { n: number; seed: number; report: Report }) {
  await using world = await createWorld();
  const accounts: ScanClicks[] = [];
  for (let account = 0; account < Math.min(accountsMax, Math.ceil(n / 12)); account += 1)
    accounts.push(await createScanClicks(world, { account, seed }));
  await world.database.pool.query('vacuum analyze');
  await using workers = await startScanWorkers(world.database.url, processes);
  const playForced = async (plan: string) => accounts[0]!.play(workers, forcedPlans[plan]!);
  let failures = await playRandom(world, accounts, workers, n, report);
  for (const plan of Object.keys(forcedPlans)) {
    const fault = await playForced(plan);
    if (fault === null) continue;
    failures += 1;
    report(`${plan}: ${fault}`);
  }
  let caught = 0;
  for (const [bug, plan] of bugs) {
    workers.plant(bug);
    if ((await playForced(plan)) !== null) caught += 1;
  }
  return {
    claim: 'clicks in four processes make one set of requests for each server, within cooldown and limits',
    tried: n,
    failures,
    plantedBugsCaught: `${caught} of ${bugs.length}`,
  };
}

async function playRandom(
  world: World,
  accounts: readonly ScanClicks[],
  workers: ScanWorkers,
  n: number,
  report: Report,
): Promise<number> {
  let failures = 0;
  await Promise.all(
    accounts.map(async (account, index) => {
      const rounds = Math.floor((n + index) / accounts.length);
      for (let round = 1; round <= rounds; round += 1) {
        const fault = await account.playRandom(workers);
        if (fault !== null) {
          failures += 1;
          report(`account ${index}, round ${round}: ${fault}`);
        }
        if (index === 0 && round % vacuumEvery === 0)
          await world.database.pool.query('vacuum analyze scan_requests');
      }
    }),
  );
  return failures;
}
