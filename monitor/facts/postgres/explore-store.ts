/**
 * Sums of a range over any filters, of one or several views. Views that are made of the same rows are one statement. Where the sums of every
 * key in every step would be many, one statement finds the largest rows without steps, and others the steps of everything and of these
 * rows alone. One more says what listened.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  columnsOf,
  type Explored,
  type ExploredFilter,
  type ExploredReading,
  type ExploredView,
  type FilterDimension,
} from '../contract/exploration.ts';
import { listDeviceAddresses } from './device-store.ts';
import { localsOf, piecesOf } from './explore-pieces-store.ts';
import { listObserved } from './observed-store.ts';
import { type Coverage, hourSeconds } from './span-store.ts';
import { type Sums, sumViews } from './sum-views-store.ts';

/** All reads are of the transaction's snapshot, so steps belong to the sums. */
export async function explore(
  db: Queryable,
  coverage: Coverage,
  asked: ExploredReading,
  views: readonly ExploredView[],
): Promise<Explored[]> {
  const reading = await narrowToAddresses(db, coverage, asked);
  const sum = (of: ExploredReading, all: readonly ExploredView[]) => sumViews(db, coverage, of, all);
  const sumAll = oncePerStep(async (stepSeconds) => {
    const everything: ExploredView = { by: [], stepSeconds, order: 'size', rows: { keys: [] } };
    return (await sum(reading, [everything]))[0]!;
  });
  const observe = oncePerStep((stepSeconds) => listObserved(db, asked, stepSeconds));
  const explored: Explored[] = [];
  for (const { isRanked, places } of divideViews(coverage, reading, views)) {
    const ofSet = places.map((place) => views[place]!);
    const [{ by, stepSeconds }] = ofSet as [ExploredView];
    const isAll = stepSeconds !== null && by.length === 0 && ofSet.length === 1;
    const sums = isAll
      ? [await sumAll(stepSeconds)]
      : await sum(reading, isRanked ? ofSet.map((view) => ({ ...view, stepSeconds: null })) : ofSet);
    for (const [i, place] of places.entries()) {
      const view = ofSet[i]!;
      const found = isRanked ? await addSteps(sums[i]!, view) : sums[i]!;
      explored[place] = { ...found, observed: stepSeconds === null ? [] : await observe(stepSeconds) };
    }
  }
  return explored;

  /** The steps of everything and of the rows that were found without. */
  async function addSteps(found: Sums, view: ExploredView): Promise<Sums> {
    const everything = await sumAll(view.stepSeconds!);
    const keys = found.rows.map((one) => one.key);
    const filters = [...reading.filters, ...filtersOf(reading, view, keys)];
    const [ofRows] = await sum({ ...reading, filters }, [{ ...view, rows: { keys } }]);
    const placeOf = new Map(keys.map((key, place) => [JSON.stringify(key), place]));
    const rowSteps = ofRows!.steps
      .filter((step) => step.row !== null)
      .map((step) => ({ ...step, row: placeOf.get(JSON.stringify(ofRows!.rows[step.row!]!.key))! }))
      .sort((a, b) => a.row - b.row || a.timeMs - b.timeMs);
    const grains = new Set([...found.grains, ...everything.grains, ...ofRows!.grains]);
    return { ...found, steps: [...everything.steps, ...rowSteps], grains: [...grains].sort() };
  }
}

/** What views with the same steps share. */
function oncePerStep<T>(read: (stepSeconds: number) => Promise<T>): (stepSeconds: number) => Promise<T> {
  const known = new Map<number, T>();
  return async (stepSeconds) => {
    const value = known.get(stepSeconds) ?? (await read(stepSeconds));
    known.set(stepSeconds, value);
    return value;
  };
}

/** Beside its devices a query names the addresses that they had, so that nothing of others is judged. */
async function narrowToAddresses(
  db: Queryable,
  coverage: Coverage,
  asked: ExploredReading,
): Promise<ExploredReading> {
  const keys = asked.filters.filter((one) => one.dimension === 'device' && one.is).map((one) => one.values);
  if (keys.length === 0) return asked;
  const values = await listDeviceAddresses(db, coverage, keys[0]!, null);
  return { ...asked, filters: [...asked.filters, { dimension: 'address', is: true, values }] };
}

/** What can be left out unread when only these keys are wanted; they may let more pass. */
function filtersOf(
  { owners, networks }: ExploredReading,
  { by }: ExploredView,
  keys: Sums['rows'][number]['key'][],
): ExploredFilter[] {
  return by.flatMap((dimension, n): ExploredFilter[] => {
    const values = [...new Set(keys.map((key) => key[n]!))];
    // Rows without a value match no filter.
    if (values.includes(null!)) return [];
    const known = new Set(values);
    switch (dimension) {
      case 'server':
      case 'customer': {
        const owned = owners.filter((one) => one[dimension] !== null && known.has(one[dimension]));
        return [{ dimension: 'address', is: true, values: [...new Set(owned.map((one) => one.address))] }];
      }
      case 'country':
      case 'as': {
        const within = networks.filter((one) => one[dimension] !== null && known.has(one[dimension]));
        return [{ dimension: 'peer', is: true, values: within.map((one) => one.peer) }];
      }
      default:
        return [{ dimension, is: true, values }];
    }
  });
}

// Which views are summed together, and which rows first.

/** Sums that PostgreSQL groups in the memory that a statement has. */
const sumsMax = 500_000;
/** So few cost less than asking first which rows are the largest, where these are found fast. */
const fewSums = 20_000;

/** Views, by their place in the question, that one statement sums. They have the same steps. */
interface ViewSet {
  /** The largest rows first, without steps. */
  isRanked: boolean;
  places: number[];
}

/**
 * Rows of a set are read and judged once, and first summed by everything that any of the views is made of: worth it where these sums are
 * about as few as those of one view, and a loss where they are nearly as many as the rows. In the order of the first view of each.
 */
function divideViews(
  coverage: Coverage,
  reading: ExploredReading,
  views: readonly ExploredView[],
): ViewSet[] {
  const seconds = reading.toMinute - reading.fromMinute;
  const isKeptByHour = coverage.all(['hours']).hours.length * hourSeconds * 2 > seconds;
  const sets: (ViewSet & { key: string; columns: string[] })[] = [];
  for (const [place, { by, stepSeconds, ...view }] of views.entries()) {
    const { kind, isIndexed } = piecesOf(coverage, { ...reading, ...view, by, stepSeconds });
    const own = columnsOf(by);
    const steps = stepSeconds === null ? 1 : seconds / stepSeconds;
    // Steps of less than an hour would be made of all the minutes.
    const isCostly = isIndexed || (isKeptByHour && stepSeconds !== null && stepSeconds % hourSeconds !== 0);
    const isRanked =
      stepSeconds !== null &&
      by.length > 0 &&
      countSums(reading, own) * steps > (isCostly ? fewSums : sumsMax);
    const key = `${isRanked} ${stepSeconds} ${kind}`;
    const fits = (columns: string[], ...parts: string[][]) =>
      parts.some((part) => part.length === columns.length) ||
      countSums(reading, columns) * (isRanked ? 1 : steps) <= sumsMax;
    const set = sets.find(
      (one) => one.key === key && fits([...new Set([...one.columns, ...own])], one.columns, own),
    );
    if (set) {
      set.places.push(place);
      set.columns = [...new Set([...set.columns, ...own])];
    } else sets.push({ isRanked, places: [place], key, columns: own });
  }
  return sets;
}

/** About how many sums of these columns there are at a large site, where no filter says how many. */
function countSums(reading: ExploredReading, columns: readonly string[]): number {
  const named = (dimension: FilterDimension) =>
    reading.filters.find((one) => one.dimension === dimension && one.is)?.values.length;
  const found = localsOf(reading)?.length ?? named('device');
  const local = found ?? (named('sensor') ?? 20) * 100;
  const isByLocal = columns.includes('local') || columns.includes('device');
  const sizes: Record<string, number> = {
    ...{ local, device: columns.includes('local') ? 1 : local, segment: 1 },
    name: named('application') ?? Math.min(2000, (isByLocal ? 1 : local) * 100),
    peer: Math.min(50_000, (found ?? named('application') ?? 25) * 2000),
    ...{ port: 50, protocol: 3, direction: 4, vantage: 2, seen_by: 50 },
  };
  // An application has few ports, mostly of one protocol and in one direction.
  const isOfFew = columns.includes('name') || columns.includes('peer');
  return columns.reduce((product, one) => {
    const isFew = isOfFew && !['local', 'device', 'name', 'peer'].includes(one);
    return product * (isFew ? Math.min(sizes[one]!, 2) : sizes[one]!);
  }, 1);
}
