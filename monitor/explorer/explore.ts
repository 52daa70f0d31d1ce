/** Answers one query. */
import type { Device } from '#monitor/devices/index.ts';
import { addressDimensions, type Exploration, type FactStore, pairsKeptMs } from '#monitor/facts/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { QueryGate } from './bound-queries.ts';
import { buildAnswer, type Period } from './build-answer.ts';
import { chooseSteps } from './choose-steps.ts';
import { labelValue } from './label-values.ts';
import { type DescribeNetworks, type PeerNetworks, readPeerNetworks } from './peer-networks.ts';
import type { Answer, Limit, Query, Value } from './query.ts';
import { readInventory, resolveFilters, sourceOf, uses } from './resolve.ts';

export interface ExplorerDeps {
  db: () => Queryable;
  facts: Pick<FactStore, 'explore' | 'newestMinutes'>;
  gate: QueryGate;
  devices: { findByKeys(siteId: number, deviceKeys: readonly string[]): Promise<Device[]> };
  /** Null: countries and ASs are not known. */
  describeNetworks: DescribeNetworks | null;
}

const factsKeptDays = 90;

/** Who asks, for turns, and whether they still wait. */
export interface Asking {
  asker?: string;
  signal?: AbortSignal;
}

/** The caller has decided that the reader may see the site. Throws as `Explorer.explore`. */
export async function explore(given: ExplorerDeps, query: Query, { asker, signal }: Asking): Promise<Answer> {
  const inTurn = (asked: Exploration) =>
    given.gate.run(asker ?? `site ${query.siteId}`, signal, () => given.facts.explore(asked));
  const deps = { ...given, facts: { explore: inTurn, newestMinutes: () => given.facts.newestMinutes() } };
  const db = deps.db();
  const nowMs = await readNowMs(db);
  const source = sourceOf(query);
  const steps = chooseSteps(query, nowMs / 1000, isKeptByHour(query, source));
  const inventory = await readInventory(db, query);
  const { siteId, by, measure, order, top } = query;
  const resolved = await resolveFilters(db, query, inventory);
  const known: Exploration = {
    ...{
      siteId,
      source,
      filters: resolved.filters,
      by,
      owners: inventory.owners,
      networks: [],
      measure,
      order,
    },
    ...{ fromMinute: steps.from, toMinute: steps.to, stepSeconds: steps.stepSeconds },
    rows: { limit: top },
  };
  const secondsBefore = query.compare === null ? 0 : steps.to - steps.from;
  const reading = { facts: deps.facts, describe: deps.describeNetworks };
  const ofPeers = await readPeerNetworks(reading, query, known, secondsBefore);
  const asked = { ...known, filters: [...known.filters, ...ofPeers.filters], networks: ofPeers.networks };
  const explored = await deps.facts.explore(asked);
  const earlier = query.compare === null ? null : await exploreBefore(deps, asked, explored);
  // Without steps it is not known when captures listened.
  const isUnseen = earlier !== null && asked.stepSeconds !== null && earlier.explored.observed.length === 0;
  const before = isUnseen ? null : earlier;
  const newest = await deps.facts.newestMinutes();
  const newestSecond = newest.get(siteId);
  const label = await labelsOf(deps, query, explored, { inventory, ofPeers });
  const { from, to, stepSeconds } = steps;
  return {
    ...{ from, to, stepSeconds, measure, by, source },
    grains: explored.grains,
    newestMs: newestSecond === undefined ? null : newestSecond * 1000,
    ...buildAnswer({ steps, explored }, before, { measure, label }),
    limits: [
      ...resolved.limits,
      ...ofPeers.limits,
      ...rangeLimits(query, source, from, nowMs),
      ...(isUnseen ? [notObservedBefore] : []),
    ],
  };
}

/** Of names and of addresses ten minutes are kept, of names by address and of peers hours. */
const isKeptByHour = (query: Query, source: Exploration['source']) =>
  source === 'pairs' ||
  (source === 'applications' && (query.measure === 'packets' || uses(query, ...addressDimensions)));

/** The same length of time before, of the same rows. */
async function exploreBefore(
  deps: ExplorerDeps,
  asked: Exploration,
  explored: Period['explored'],
): Promise<Period> {
  const seconds = asked.toMinute - asked.fromMinute;
  const earlier = { fromMinute: asked.fromMinute - seconds, toMinute: asked.fromMinute };
  const rows = { keys: explored.rows.map((one) => one.key) };
  return {
    steps: { from: earlier.fromMinute, to: earlier.toMinute, stepSeconds: asked.stepSeconds },
    explored: await deps.facts.explore({ ...asked, ...earlier, rows }),
  };
}

async function labelsOf(
  deps: ExplorerDeps,
  { siteId, by }: Query,
  explored: Period['explored'],
  { inventory, ofPeers }: { inventory: Awaited<ReturnType<typeof readInventory>>; ofPeers: PeerNetworks },
): Promise<(key: readonly (string | null)[]) => Value[]> {
  const place = by.indexOf('device');
  const keys = place < 0 ? [] : explored.rows.flatMap((one) => one.key[place] ?? []);
  const found = keys.length === 0 ? [] : await deps.devices.findByKeys(siteId, [...new Set(keys)]);
  const devices = new Map(found.map((one) => [`${one.segment}|${one.mac}`, one]));
  return (key) =>
    key.map((value, i) => labelValue(by[i]!, value, { inventory, devices, asNames: ofPeers.asNames }));
}

const notObservedBefore: Limit = {
  code: 'previous_not_observed',
  dimension: null,
  message:
    'No capture that could see this traffic listened in the period before, so there is nothing to compare with.',
};

/** What of the range is kept no longer. */
function rangeLimits(query: Query, source: Exploration['source'], from: number, nowMs: number): Limit[] {
  const limits: Limit[] = [];
  const second = (ms: number) => `${new Date(Math.ceil(ms / 60_000) * 60_000).toISOString().slice(0, 16)}Z`;
  const seconds =
    query.compare === null
      ? 0
      : 'lastSeconds' in query.range
        ? query.range.lastSeconds
        : query.range.to - query.range.from;
  if (source === 'pairs' && from - seconds < Math.floor((nowMs - pairsKeptMs) / 60_000) * 60)
    limits.push({
      code: 'peers_kept_24_hours',
      dimension: 'peer',
      message: `Peers are kept for 24 hours: nothing before ${second(nowMs - pairsKeptMs)} is in these numbers. Leave out peer for an older range.`,
    });
  if (from < nowMs / 1000 - factsKeptDays * 86_400)
    limits.push({
      code: 'facts_kept_3_months',
      dimension: null,
      message: 'Traffic is kept for three months: what is older is missing.',
    });
  return limits;
}
