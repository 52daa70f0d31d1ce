import type { Setting } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import { createLeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createAllocations, createProtectionSection } from './allocations/index.ts';
import type { Feed, FeedSources } from './feed.ts';
import { incidents } from './incidents/index.ts';
import { live } from './live/index.ts';
import { minutes } from './minutes/index.ts';
import { portScans } from './port-scans/index.ts';
import type { RunDeps, Turn } from './run-feed.ts';
import { runPasses, runTick, type TickResult } from './run-feed.ts';
import * as store from './store.ts';
import { vulnerabilities } from './vulnerabilities/index.ts';

export { defineFeed, type Feed } from './feed.ts';
export { incidents } from './incidents/index.ts';
export { live } from './live/index.ts';
export { minutes } from './minutes/index.ts';
export { portScans } from './port-scans/index.ts';
export type { FeedItem } from './round.ts';
export type { TickResult } from './run-feed.ts';
export type { FeedState, HeldBack } from './store.ts';
export { vulnerabilities } from './vulnerabilities/index.ts';
export { createWake } from './wake.ts';

/** Cursors that nothing visited for this long are forgotten (NET-2.9). */
export const cursorsKeptMs = 2 * 86_400_000;

/** A feed and its loop. */
export type RunningFeed = ReturnType<typeof createFeed>;

export type Feeds = ReturnType<typeof createFeeds>;

export interface FeedsDeps extends Omit<FeedSources, 'allocations'> {
  /** What is declared; `installedFeeds` outside of tests. */
  feeds: readonly Feed[];
  cadences: Cadences;
  /** Connections that only read, for what plans ask (NET-5.3); the same as the others when absent. */
  reader?: () => Queryable;
  connection: Connection;
  reporter: Reporter;
  /** Documentation ranges count as globally routable: lab and demo worlds alone. */
  documentationIsGlobal: boolean;
}

/** Items that a page shows. */
const heldBackShown = 20;

/** Longer than one request may take, so that a slow one does not cost the lease. */
const leaseSeconds = 30;

export function createFeeds(deps: FeedsDeps) {
  const reader = deps.reader ?? deps.db;
  const allocations = createAllocations(deps);
  const all = deps.feeds.map((feed) => createFeed(deps, { ...deps, allocations }, feed));
  const heldOutcomes = deps.feeds.map(({ name, items, outcomes }) => ({
    feed: name,
    isOfAllocations: items === 'allocations',
    // The engine notes a refused request as `refused` for each of its items; a feed does not declare that outcome.
    outcomes: ['refused', ...Object.keys(outcomes).filter((outcome) => outcomes[outcome] === 'held_back')],
  }));
  return {
    /** In the order of pages. */
    all,
    /** Throws for a feed that is not declared. */
    find(name: string): RunningFeed {
      const found = all.find(({ feed }) => feed.name === name);
      if (!found) throw new CodedError('feeds.unknown', `There is no feed "${name}".`);
      return found;
    },
    /** Items that do not get through, of all feeds, for people. */
    listHeldBack: () => store.listHeldBack(reader(), heldOutcomes, heldBackShown),
    /** Exact addresses of live allocations, as the last page-through listed them, for the plans of sensors. */
    protection: createProtectionSection({ ...deps, reader }),
    /** The targets may have changed: the next run of a feed lists them again. */
    forgetTargets: () => allocations.forget(),
    /** Forgets cursors that nothing has visited since (NET-2.9). */
    forgetCursors: (cutoffMs: number) => store.deleteCursorsBefore(deps.db(), cutoffMs),
  };
}

function createFeed(deps: FeedsDeps, sources: FeedSources, feed: Feed) {
  const { db, clock, reporter } = deps;
  const cadence = deps.cadences[feed.name];
  if (!cadence)
    throw new CodedError('feeds.unknown', `The settings of the feed "${feed.name}" were not read.`);
  const { intervalSeconds } = cadence;
  const runDeps: RunDeps = { ...deps, feed, work: feed.create(sources), intervalSeconds };
  let lastResult: TickResult | null = null;
  let lastError: string | null = null;
  let isOneTick = false;
  const loop = createLeasedLoop({
    ...{ name: feed.loop, intervalMs: intervalSeconds * 1000, ttlSeconds: leaseSeconds, db, clock, reporter },
    async run(lease, renew, signal) {
      const turn: Turn = { lease, renew, signal };
      lastResult = await (isOneTick ? runTick(runDeps, turn) : runPasses(runDeps, turn));
      // The caller of one tick gets its error.
      if (isOneTick) return null;
      const error = lastResult?.error ?? null;
      // The same fault every few seconds is one fact.
      if (error !== null && error !== lastError)
        reporter.warn('feed not delivered', { feed: feed.name, error });
      if (error === null && lastError !== null) reporter.info('feed is delivered again', { feed: feed.name });
      lastError = error;
      return error;
    },
  });
  return {
    feed,
    cadence,
    loop,
    /** One tick now, where the loop runs as many as are due; `held` when another process holds the lease, `idle` when no connection is enabled. */
    async runOnce(): Promise<TickResult | 'held' | 'idle'> {
      lastResult = null;
      isOneTick = true;
      const isMine = await loop.runOnce().finally(() => {
        isOneTick = false;
      });
      return isMine ? (lastResult ?? 'idle') : 'held';
    },
    /** Null before the feed's first run. */
    state: () => store.readFeedState(db(), feed.name),
  };
}

interface Cadence {
  /** False leaves the loop to another process. */
  isOn: boolean;
  intervalSeconds: number;
}

/** By name of the feed. */
type Cadences = Readonly<Record<string, Cadence>>;

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

/** The feeds of the monitor, in the order of pages; a new feed is added here. */
export const installedFeeds: readonly Feed[] = [minutes, incidents, live, portScans, vulnerabilities];
