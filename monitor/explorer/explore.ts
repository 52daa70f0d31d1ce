/**
 * Answers queries: one, or several of a site, as a page has them. What they have in common is read once: the time, the inventory, and the
 * facts of those that have source, range, filters and measure in common.
 */

import { transportName } from '#contracts/ip-protocols.ts';
import { keptCode, keptMs, keptText } from '#contracts/retention.ts';
import { type Device, labelDevice } from '#monitor/devices/index.ts';
import {
  addressDimensions,
  type Exploration,
  type Explored,
  type ExploredView,
  type FactStore,
  pairsKeptMs,
} from '#monitor/facts/index.ts';
import { countryName, dimensionTable, noPort, sidesOf, type Value } from '#service-kit/explorer/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { QueryGate } from './bound-queries.ts';
import { buildAnswer, chooseSteps, type Period, type Steps } from './build-answer.ts';
import {
  type DescribedPeers,
  type DescribeNetworks,
  describePeers,
  type PeerNetworks,
  readPeerNetworks,
} from './peer-networks.ts';
import type { Answer, Dimension, Limit, Query } from './query.ts';
import {
  type Inventory,
  type ResolvedFilters,
  readInventory,
  resolveFilters,
  sensorValue,
  sourceOf,
  uses,
} from './resolve.ts';

export interface ExplorerDeps {
  db: () => Queryable;
  facts: Pick<FactStore, 'explore' | 'exploreTogether' | 'newestMinutes'>;
  gate: QueryGate;
  devices: { findByKeys(siteId: number, deviceKeys: readonly string[]): Promise<Device[]> };
  /** Null: countries and ASs are not known. */
  describeNetworks: DescribeNetworks | null;
}

const factsKeptSeconds = keptMs('traffic') / 1000 - 2 * 86_400;

/** Who asks, for turns, and whether they still wait. */
export interface Asking {
  asker?: string;
  signal?: AbortSignal;
}

/** A query, and the question about facts that it becomes. */
interface Planned {
  query: Query;
  steps: Steps;
  asked: Exploration;
  ofPeers: PeerNetworks;
  limits: Limit[];
}

/** What was read for a query. */
interface Found extends Planned {
  explored: Explored;
  /** Null: not asked for. */
  earlier: Period | null;
}

/** The caller has decided that the reader may see the site. Throws as `Explorer.explore`. */
export async function explore(given: ExplorerDeps, query: Query, asking: Asking): Promise<Answer> {
  return (await exploreTogether(given, [query], asking))[0]!;
}

/** The same of several queries of one site, in their order. Those of the same facts and range are one reading, which takes one turn. */
export async function exploreTogether(
  given: ExplorerDeps,
  queries: readonly Query[],
  asking: Asking,
): Promise<Answer[]> {
  const [first] = queries;
  if (!first) return [];
  const { siteId } = first;
  const deps = { ...given, facts: inTurns(given, asking, siteId) };
  const db = deps.db();
  const nowMs = await readNowMs(db);
  const inventory = await readInventory(db, {
    siteId,
    by: queries.flatMap((one) => one.by),
    filters: queries.flatMap((one) => one.filters),
  });
  const { describeNetworks } = deps;
  const describe =
    describeNetworks && once((asked: Exploration) => describePeers(deps.facts, describeNetworks, asked));
  const resolve = once((of: Pick<Query, 'siteId' | 'filters'>) => resolveFilters(db, of, inventory));
  const planned = await Promise.all(
    queries.map(async (query) => {
      const resolved = await resolve({ siteId, filters: query.filters });
      return planQuery(query, { nowMs, inventory, resolved, describe });
    }),
  );
  const readings = [...Map.groupBy(planned, readingKey).values()];
  const found = new Map(
    (await Promise.all(readings.map((ofReading) => readTogether(deps.facts, ofReading))))
      .flat()
      .map((one) => [one.query, one]),
  );
  const newestSecond = (await deps.facts.newestMinutes()).get(siteId);
  const newestMs = newestSecond === undefined ? null : newestSecond * 1000;
  return Promise.all(queries.map((query) => answer(deps, found.get(query)!, { inventory, newestMs })));
}

/** Each reading waits for a turn of its own. */
function inTurns(
  { gate, facts }: ExplorerDeps,
  { asker, signal }: Asking,
  siteId: number,
): ExplorerDeps['facts'] {
  const inTurn = <T>(work: () => Promise<T>) => gate.run(asker ?? `site ${siteId}`, signal, work);
  return {
    explore: (asked) => inTurn(() => facts.explore(asked)),
    exploreTogether: (reading, views) => inTurn(() => facts.exploreTogether(reading, views)),
    newestMinutes: () => facts.newestMinutes(),
  };
}

/** Equal questions are asked once. */
function once<Question, T>(ask: (question: Question) => Promise<T>): (question: Question) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (question) => {
    const key = JSON.stringify(question);
    const answer = known.get(key) ?? ask(question);
    known.set(key, answer);
    return answer;
  };
}

interface Known {
  nowMs: number;
  inventory: Inventory;
  resolved: ResolvedFilters;
  describe: ((asked: Exploration) => Promise<DescribedPeers>) | null;
}

async function planQuery(query: Query, { nowMs, inventory, resolved, describe }: Known): Promise<Planned> {
  const source = sourceOf(query);
  const sides = sidesOf(query.filters);
  const isOneSided = !sides.in || !sides.out;
  const steps = chooseSteps(query, nowMs / 1000, isKeptByHour(query, source));
  const { siteId, by, top } = query;
  const measure = isOneSided ? 'bytes' : query.measure;
  const order = isOneSided ? (sides.in ? 'in' : 'out') : query.order;
  const known: Exploration = {
    ...{ siteId, source, filters: resolved.filters, owners: inventory.owners, networks: [], measure },
    ...{ fromMinute: steps.from, toMinute: steps.to, stepSeconds: steps.stepSeconds },
    ...{ by, order, rows: { limit: top } },
  };
  const secondsBefore = query.compare === null ? 0 : steps.to - steps.from;
  const ofPeers = await readPeerNetworks(describe, query, known, secondsBefore);
  const asked = { ...known, filters: [...known.filters, ...ofPeers.filters], networks: ofPeers.networks };
  const limits = [
    ...(measure === query.measure ? [] : [packetsBothWays]),
    ...[...resolved.limits, ...ofPeers.limits, ...rangeLimits(query, source, steps.from, nowMs)],
  ];
  return { query, steps, asked, ofPeers, limits };
}

/** Equal for queries of the same facts and range. Networks of peers are read of both periods, so they follow from it. */
const readingKey = ({ query, asked }: Planned) =>
  JSON.stringify([
    ...[asked.source, asked.fromMinute, asked.toMinute, asked.filters, asked.measure, query.compare],
  ]);

const viewOf = ({ by, stepSeconds, order, rows }: Exploration): ExploredView => ({
  ...{ by, stepSeconds, order, rows },
});

/** Reads queries of the same facts and range. */
async function readTogether(
  facts: Pick<FactStore, 'exploreTogether'>,
  planned: readonly Planned[],
): Promise<Found[]> {
  const [{ query, asked }] = planned as [Planned];
  const networks = planned.find((one) => one.asked.networks.length > 0)?.asked.networks ?? [];
  const { by: _by, stepSeconds: _step, order: _order, rows: _rows, ...rest } = asked;
  const reading = { ...rest, networks };
  const explored = await facts.exploreTogether(
    reading,
    planned.map((one) => viewOf(one.asked)),
  );
  if (query.compare === null)
    return planned.map((one, i) => ({ ...one, explored: explored[i]!, earlier: null }));
  // The same length of time before, of the same rows.
  const seconds = asked.toMinute - asked.fromMinute;
  const range = { fromMinute: asked.fromMinute - seconds, toMinute: asked.fromMinute };
  const views = planned.map((one, i) => ({
    ...viewOf(one.asked),
    rows: { keys: explored[i]!.rows.map((row) => row.key) },
  }));
  const before = await facts.exploreTogether({ ...reading, ...range }, views);
  return planned.map((one, i) => {
    const steps = { from: range.fromMinute, to: range.toMinute, stepSeconds: one.asked.stepSeconds };
    return { ...one, explored: explored[i]!, earlier: { steps, explored: before[i]! } };
  });
}

async function answer(
  deps: ExplorerDeps,
  found: Found,
  { inventory, newestMs }: { inventory: Inventory; newestMs: number | null },
): Promise<Answer> {
  const { query, steps, asked, ofPeers, explored, earlier } = found;
  // Without steps it is not known when captures listened.
  const isUnseen = earlier !== null && asked.stepSeconds !== null && earlier.explored.observed.length === 0;
  const label = await labelsOf(deps, query, explored, { inventory, ofPeers });
  const { from, to, stepSeconds } = steps;
  const { by } = query;
  const { measure } = asked;
  const sides = sidesOf(query.filters);
  return {
    ...{ from, to, stepSeconds, measure, by, source: asked.source },
    ...{ grains: explored.grains, newestMs },
    ...buildAnswer({ steps, explored }, isUnseen ? null : earlier, { measure, label, sides }),
    limits: [...found.limits, ...(isUnseen ? [notObservedBefore] : [])],
  };
}

/** Of names and of addresses ten minutes are kept, of names by address and of peers hours. */
const isKeptByHour = (query: Query, source: Exploration['source']) =>
  source === 'pairs' ||
  (source === 'applications' && (query.measure === 'packets' || uses(query, ...addressDimensions)));

async function labelsOf(
  deps: ExplorerDeps,
  { siteId, by }: Query,
  explored: Explored,
  { inventory, ofPeers }: { inventory: Inventory; ofPeers: PeerNetworks },
): Promise<(key: readonly (string | null)[]) => Value[]> {
  const place = by.indexOf('device');
  const keys = place < 0 ? [] : explored.rows.flatMap((one) => one.key[place] ?? []);
  const found = keys.length === 0 ? [] : await deps.devices.findByKeys(siteId, [...new Set(keys)]);
  const devices = new Map(found.map((one) => [`${one.segment}|${one.mac}`, one]));
  return (key) =>
    key.map((value, i) => labelValue(by[i]!, value, { inventory, devices, asNames: ofPeers.asNames }));
}

const packetsBothWays: Limit = {
  code: 'packets_both_ways',
  dimension: null,
  message: 'Packets are counted in both directions together: of one direction these are bytes.',
};

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
      code: `peers_kept_${keptCode('pairs')}`,
      dimension: 'peer',
      message: `Peers are kept for ${keptText('pairs')}: nothing before ${second(nowMs - pairsKeptMs)} is in these numbers. Leave out peer for an older range.`,
    });
  if (from < nowMs / 1000 - factsKeptSeconds)
    limits.push({
      code: `facts_kept_${keptCode('traffic')}`,
      dimension: null,
      message: `Traffic is kept for ${keptText('traffic')}: what is older is missing.`,
    });
  return limits;
}

// Names for people of what stands in the rows of an answer.

/** A value as facts have it, in the text form of the dimension, with a name. */
function labelValue(
  dimension: Dimension,
  value: string | null,
  known: { inventory: Inventory; devices: ReadonlyMap<string, Device>; asNames: ReadonlyMap<string, string> },
): Value {
  const missing = dimensionTable[dimension].none!;
  if (value === null) return { value, label: missing };
  switch (dimension) {
    case 'server':
      return { value, label: known.inventory.serverNames.get(value) ?? value };
    case 'customer':
      return { value, label: `Account ${value}` };
    case 'device': {
      const device = known.devices.get(value);
      return { value, label: device ? labelDevice(device).text : value };
    }
    case 'country':
      return { value, label: countryName(value) ?? value };
    case 'as': {
      const name = known.asNames.get(value);
      return { value, label: name === undefined ? value : `${value} ${name}` };
    }
    case 'port':
      return { value, label: value === noPort ? missing : value };
    case 'transport': {
      const name = transportName(Number(value));
      return { value: name, label: name.toUpperCase() };
    }
    case 'sensor': {
      const text = sensorValue(known.inventory.sensors, Number(value));
      const name = known.inventory.sensors.find((one) => String(one.id) === value)?.hostName;
      return { value: text, label: name ?? text };
    }
    default:
      return { value, label: value };
  }
}
