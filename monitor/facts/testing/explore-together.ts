/** Views of one reading, asked for together: every engine answers as if each had been asked for alone, grains included. */
import { isDeepStrictEqual } from 'node:util';
import type { ExploredReading, ExploredView } from '../contract/exploration.ts';
import type { FactStore } from '../contract/fact-store.ts';
import type { SiteRange } from '../contract/facts.ts';
import { randomExploration, randomView } from './random-exploration.ts';
import type { Random } from './random-uploads.ts';

/** Compares both ways of asking for some views at random; returns where they differ. */
export async function compareTogether(
  facts: FactStore,
  random: Random,
  range: SiteRange,
  sensorIds: readonly number[],
): Promise<string[]> {
  const { by, stepSeconds, order, rows, ...reading } = randomExploration(random, range, sensorIds);
  const first: ExploredView = { by, stepSeconds, order, rows };
  const views = [first];
  while (views.length < 4) {
    const view = randomView(random, reading.source);
    // Views with the same steps are those that an engine can read at once.
    views.push(random(3) === 0 ? view : { ...view, stepSeconds });
  }
  return await compareViews(facts, reading, views);
}

/** The same of these views. */
export async function compareViews(
  facts: FactStore,
  reading: ExploredReading,
  views: readonly ExploredView[],
): Promise<string[]> {
  const together = await facts.exploreTogether(reading, views);
  const offences = together.length === views.length ? [] : [`${together.length} answers`];
  for (const [i, view] of views.entries()) {
    const alone = await facts.explore({ ...reading, ...view });
    if (!isDeepStrictEqual(together[i], alone))
      offences.push(
        `view ${i} of ${JSON.stringify({ ...reading, views })}: ${JSON.stringify(together[i])} instead of ${JSON.stringify(alone)}`,
      );
  }
  return offences;
}
