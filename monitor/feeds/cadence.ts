/** Settings of feeds: whether `serve` runs a feed's loop, and the pause between two runs. */
import type { Setting } from '#common/config/index.ts';
import type { Feed } from './feed.ts';

export interface Cadence {
  /** False leaves the loop to another process. */
  isOn: boolean;
  intervalSeconds: number;
}

/** By name of the feed. */
export type Cadences = Readonly<Record<string, Cadence>>;

const keyOf = ({ name }: Feed, part: keyof Feed['cadence']) => `feed ${name} ${part}`;

/** All settings of these feeds, as `readSettings` takes them. */
export function settingsOfFeeds(feeds: readonly Feed[]): Record<string, Setting<unknown>> {
  return Object.fromEntries(
    feeds.flatMap((feed) => [
      [keyOf(feed, 'isOn'), feed.cadence.isOn],
      [keyOf(feed, 'seconds'), feed.cadence.seconds],
    ]),
  );
}

/** The cadences in what `readSettings` made of these settings. */
export function cadencesOf(feeds: readonly Feed[], values: Readonly<Record<string, unknown>>): Cadences {
  return Object.fromEntries(
    feeds.map((feed) => [
      feed.name,
      {
        isOn: values[keyOf(feed, 'isOn')] as boolean,
        intervalSeconds: values[keyOf(feed, 'seconds')] as number,
      },
    ]),
  );
}
