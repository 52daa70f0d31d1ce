/**
 * `npm run prove -- feed-faults`: minutes, live traffic, attacks, port scans and potential vulnerabilities go from a monitor to operations over a way on
 * which deliveries and receipts are lost, doubled, late, cut and refused, while data changes and the feeds' processes restart. What
 * operations holds in the end is what the monitor knows: nothing missing, nothing twice, nothing older. `--n` is the number of
 * faults of each feed.
 */
import { seededBelow } from '#monitor/facts/testing/random-uploads.ts';
import { compare } from './compare.ts';
import { deliveryFaults, type ReceiverPlant, receiverPlants } from './fault-proxy.ts';
import { createHistory } from './history.ts';
import { createPair, type FeedName, feedNames, type Pair, pathOf } from './pair.ts';
import type { ScanPlant } from './plant-scans.ts';

export const name = 'feed-faults';

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
  /** Changes between two comparisons. */
  changesOfRound?: number;
}

/** The sweep of a server's minutes takes two visits; one more where data came meanwhile. */
const ticksToSettle = 4;
/** Deliveries of minutes are many, those of incidents are one. */
const minutesEvery = 5;

export async function prove({ n, seed, report }: Options) {
  const { faults, offences, rounds } = await runFeeds({ n, seed, plant: null, report });
  for (const offence of offences.slice(0, 20)) report(offence);
  let caught = 0;
  for (const plant of receiverPlants) {
    const found = await runFeeds({ n: Math.min(n, 150), seed, plant, report: () => {} });
    report(`planted ${plant}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `minutes, live traffic, attacks, port scans and potential vulnerabilities are at operations as the monitor knows them, after each of ${rounds} rounds of ${deliveryFaults.length} kinds of faults on the way`,
    tried: faults,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${receiverPlants.length}`,
  };
}

export async function runFeeds(
  options: Options & { plant: ReceiverPlant | ScanPlant | null; feeds?: readonly FeedName[] },
) {
  const { n, seed, plant, report, changesOfRound = 100, feeds = feedNames } = options;
  const random = seededBelow(seed);
  const offences: string[] = [];
  let rounds = 0;
  await using pair = await createPair(random, plant);
  const history = createHistory(pair, random);
  const least = () => Math.min(...feeds.map((feed) => pair.proxy.suffered.get(pathOf[feed]) ?? 0));
  while (least() < n && offences.length === 0) {
    await pair.proxy.setFaulty(true);
    for (let change = 0; change < changesOfRound; change += 1) {
      await history.change(feeds);
      for (const feed of feeds) {
        if (feed === 'telemetry' && change % minutesEvery > 0) continue;
        await pair.tick(feed);
        if (random(50) === 0) await pair.restart(feed);
      }
    }
    await settle(pair, feeds, () => history.settle(feeds));
    rounds += 1;
    offences.push(...(await compare(pair, feeds)).map((fault) => `round ${rounds}: ${fault}`));
    if (rounds % 5 === 0) report(`${least()} faults of each feed after ${rounds} rounds`);
  }
  const faults = [...pair.proxy.suffered.values()].reduce((sum, count) => sum + count, 0);
  return { faults, offences, rounds };
}

/** Without faults and changes, until everything has been delivered. */
async function settle(pair: Pair, feeds: readonly FeedName[], prepare: () => Promise<void>): Promise<void> {
  await pair.proxy.setFaulty(false);
  await prepare();
  for (const feed of feeds) {
    // A read of the live store serves for five seconds.
    await pair.restart(feed);
    for (let tick = 0; tick < ticksToSettle; tick += 1) await pair.tick(feed);
  }
}
