/** `npm run prove -- killed-count`: N kills of processes and of the database. */
import { seededRandom } from '#common/random/index.ts';
import { createFleet } from './api-fleet.ts';
import { readCounts, sendTraffic } from './count-proof.ts';

export const name = 'killed-count';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveKilledCount({ kills: options.n, seed: options.seed, report: options.report });
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  const planted = await proveKilledCount({
    kills: 24,
    seed: options.seed,
    acknowledgesEarly: true,
    report: options.report,
  });
  options.report(`planted "acknowledge early": ${planted.faults[0] ?? 'NOT CAUGHT'}`);
  return {
    claim: `numbered answers ≤ count ≤ requests, no number twice (${result.sent} requests, ${result.numbered} numbered)`,
    tried: result.kills,
    failures: result.faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}

interface KilledCountOptions {
  kills: number;
  seed: number;
  acknowledgesEarly?: boolean;
  report?: (line: string) => void;
}

/**
 * Processes and the database are killed under load. Every answer with a number was counted, no number was given
 * twice, and no unsent request was counted.
 */
async function proveKilledCount(
  options: KilledCountOptions,
): Promise<{ kills: number; sent: number; numbered: number; faults: string[] }> {
  await using fleet = await createFleet({
    processes: 3,
    keys: 25,
    isDurable: true,
    acknowledgesEarly: options.acknowledgesEarly ?? false,
  });
  const random = seededRandom(options.seed);
  let kills = 0;
  const isOver = () => kills >= options.kills;
  const traffic = sendTraffic(fleet, 60, isOver);
  while (!isOver()) {
    await new Promise((wake) => setTimeout(wake, 150 + random() * 400));
    if (random() < 0.25) await killDatabase(fleet);
    else await fleet.replace(Math.floor(random() * fleet.urls.length));
    kills += 1;
    if (kills % 10 === 0) options.report?.(`${kills} kills`);
  }
  const { sent, numbers, unnumbered, lost } = await traffic;
  const counts = await readCounts(fleet);
  const total = counts.months.reduce((sum, count) => sum + count, 0);
  const faults: string[] = [];
  if (new Set(numbers).size !== numbers.length)
    faults.push(`${numbers.length - new Set(numbers).size} numbers were given twice`);
  if (numbers.length > total) faults.push(`${numbers.length} answers had a number, ${total} were counted`);
  if (numbers.some((number) => number > total))
    faults.push(`a number beyond the count of ${total} was given`);
  if (total > sent) faults.push(`${total} were counted, ${sent} were sent`);
  if (counts.keys !== total || counts.days !== total)
    faults.push(`the account says ${total}, its keys ${counts.keys}, its days ${counts.days}`);
  options.report?.(
    `${sent} sent, ${numbers.length} numbered, ${total} counted, ${unnumbered} unnumbered, ${lost} lost`,
  );
  return { kills, sent, numbered: numbers.length, faults };
}

/** Resolves when the server answers again. */
async function killDatabase(fleet: Awaited<ReturnType<typeof createFleet>>): Promise<void> {
  await fleet.killDatabase();
  for (let attempt = 0; attempt < 600; attempt += 1) {
    try {
      await fleet.pool.query('select 1');
      return;
    } catch {
      await new Promise((wake) => setTimeout(wake, 25));
    }
  }
  throw new Error('the database did not come back');
}
