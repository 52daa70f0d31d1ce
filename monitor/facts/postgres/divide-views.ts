/**
 * Which views of a reading PostgreSQL sums together. Rows are then read and judged once, and first summed by everything that any of the
 * views is made of: worth it where these sums are about as few as those of one view, and a loss where they are nearly as many as the
 * rows.
 */
import {
  type ExploredDimension,
  type ExploredReading,
  type ExploredView,
  type FilterDimension,
  splitPlaces,
} from '../contract/exploration.ts';
import { isOfCaptures, isOfNames, localsOf, piecesOf } from './explore-pieces-store.ts';
import type { PieceQuery } from './pieces.ts';
import { type Coverage, hourSeconds } from './span-store.ts';

/**
 * `once`: in one statement. `ranked`: which rows are the largest without steps, then the steps of everything and of these rows. `apart`: the
 * same in several statements, where the steps of everything are kept in other sums, or those of each view's rows are found fast.
 */
export type Way = 'once' | 'ranked' | 'apart';

/** Views, by their place in the question, that are summed together. They have the same steps. */
export interface ViewSet {
  way: Way;
  places: number[];
}

/** Sums that PostgreSQL groups in the memory that a statement has. */
const sumsMax = 500_000;
/** So few cost less than asking first which rows are the largest. */
const fewSums = 20_000;

/** In the order of the first view of each. */
export function divideViews(
  coverage: Coverage,
  reading: PieceQuery,
  views: readonly ExploredView[],
): ViewSet[] {
  const sets: (ViewSet & { key: string; views: ExploredView[] })[] = [];
  for (const [place, view] of views.entries()) {
    const { kind } = piecesOf(coverage, { ...reading, ...view });
    const way = wayOf(coverage, reading, view, kind);
    const key = `${way} ${view.stepSeconds} ${kind}`;
    const steps = way === 'once' ? stepsOf(reading, view) : 1;
    const set = sets.find((one) => one.key === key && areFew(reading, [...one.views, view], steps));
    if (set) {
      set.places.push(place);
      set.views.push(view);
    } else sets.push({ way, places: [place], key, views: [view] });
  }
  return sets;
}

function wayOf(coverage: Coverage, reading: PieceQuery, view: ExploredView, kind: string): Way {
  if (!isRankedFirst(coverage, reading, view)) return 'once';
  const everything = piecesOf(coverage, { ...reading, ...view, by: [] });
  if (kind !== everything.kind) return 'apart';
  if (countSums(reading, rawNamesOf(view.by)) * stepsOf(reading, view) <= fewSums) return 'once';
  // An index finds the rows of an address or of a name.
  const asked = { ...reading, ...view };
  const isIndexed = isOfNames(asked) || (reading.source === 'addresses' && !isOfCaptures(asked));
  return isIndexed ? 'apart' : 'ranked';
}

/** One value of these leaves few remote addresses. */
const narrowing: readonly ExploredDimension[] = ['address', 'device', 'application', 'peer'];
/** So many times more minutes than those that each read would judge. */
const judgedShare = 10;

/**
 * Whether most of the range is kept by the hour, and steps are shorter than that; or there are so many remote addresses that
 * sums of each in each step would not fit into memory; or what is kept of each minute can be read again and again. Which capture counts is
 * not kept, so few sums of captures are made in one read.
 */
function isRankedFirst(coverage: Coverage, reading: PieceQuery, view: ExploredView): boolean {
  const { by, stepSeconds } = view;
  const { fromMinute, toMinute, filters } = reading;
  if (stepSeconds === null || by.length === 0) return false;
  const asked = { ...reading, ...view };
  const isFew = countSums(reading, rawNamesOf(by)) * stepsOf(reading, view) <= sumsMax;
  if (isFew && isOfCaptures(asked)) return false;
  if (reading.source === 'addresses') return true;
  if (isOfNames(asked)) {
    const unjudged = coverage
      .namesUpTo(stepSeconds)
      .unjudged.reduce((sum, { from, to }) => sum + to - from, 0);
    return unjudged * judgedShare <= toMinute - fromMinute;
  }
  const isFine = stepSeconds % hourSeconds !== 0;
  const isMany =
    by.includes('peer') && !filters.some(({ dimension, is }) => is && narrowing.includes(dimension));
  return (isFine || isMany) && coverage.hours.length * hourSeconds * 2 > toMinute - fromMinute;
}

const stepsOf = (
  { fromMinute, toMinute }: Pick<ExploredReading, 'fromMinute' | 'toMinute'>,
  { stepSeconds }: Pick<ExploredView, 'stepSeconds'>,
) => (stepSeconds === null ? 1 : (toMinute - fromMinute) / stepSeconds);

/** Columns of `Pieces` that these dimensions are made of, each once. */
export const rawNamesOf = (by: readonly ExploredDimension[]): Set<string> =>
  new Set(by.flatMap((one) => rawNames[one]));

const rawNames: Readonly<Record<ExploredDimension, readonly string[]>> = {
  address: ['local', 'segment'],
  server: ['local', 'segment'],
  customer: ['local', 'segment'],
  country: ['peer'],
  as: ['peer'],
  device: ['device_key'],
  application: ['name'],
  peer: ['peer'],
  port: ['server_port'],
  transport: ['protocol'],
  direction: ['direction'],
  sensor: ['capture_id'],
  scope: ['vantage'],
};

/** Whether one of the views needs all columns anyway, or there are few sums of all columns in the steps. */
function areFew(reading: PieceQuery, views: readonly ExploredView[], steps: number): boolean {
  const all = rawNamesOf(views.flatMap((one) => one.by));
  return (
    views.some((one) => rawNamesOf(one.by).size === all.size) || countSums(reading, all) * steps <= sumsMax
  );
}

/** What is supposed of a large site, where no filter says how many there are. */
const supposed = {
  locals: 2000,
  localsOfSensor: 100,
  names: 2000,
  namesOfLocal: 100,
  peers: 50_000,
  peersOfOne: 2000,
};
const fewValues = { server_port: 50, protocol: 3, direction: 4, vantage: 2, capture_id: 50, segment: 1 };

/** About how many sums of these columns there are. */
function countSums(reading: PieceQuery, names: ReadonlySet<string>): number {
  const valuesOf = (dimension: FilterDimension) =>
    reading.filters.find((one) => one.dimension === dimension && one.is)?.values;
  const sensors = valuesOf('sensor');
  const found = localsOf(reading)?.length ?? valuesOf('device')?.length;
  const locals = found ?? (sensors ? sensors.length * supposed.localsOfSensor : supposed.locals);
  const isByLocal = names.has('local') || names.has('device_key');
  const named = valuesOf('application')?.length;
  const ofLocals = isByLocal ? supposed.namesOfLocal : locals * supposed.namesOfLocal;
  const { addresses, networks } = splitPlaces(valuesOf('peer') ?? ['::/0']);
  const counts: number[] = [];
  if (isByLocal) counts.push(locals);
  if (names.has('name')) counts.push(named ?? Math.min(supposed.names, ofLocals));
  if (names.has('peer'))
    counts.push(
      networks.length === 0
        ? addresses.length
        : Math.min(supposed.peers, (found ?? named ?? supposed.peers) * supposed.peersOfOne),
    );
  // An application has few ports, mostly of one protocol and in one direction.
  for (const [name, count] of Object.entries(fewValues))
    if (names.has(name)) counts.push(names.has('name') || names.has('peer') ? Math.min(count, 2) : count);
  return counts.reduce((product, count) => product * count, 1);
}
