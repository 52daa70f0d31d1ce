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
import { isByName, localsOf, piecesOf } from './explore-pieces-store.ts';
import { type Coverage, hourSeconds } from './span-store.ts';

/** Views, by their place in the question, that are summed together. */
export interface ViewSet {
  /** Which rows are the largest is read without steps, before the steps of these rows. */
  isRankedFirst: boolean;
  places: number[];
}

/** Sums that PostgreSQL groups in the memory that a statement has. */
const sumsMax = 500_000;

/** In the order of the first view of each. */
export function divideViews(
  coverage: Coverage,
  reading: ExploredReading,
  views: readonly ExploredView[],
): ViewSet[] {
  const sets: (ViewSet & { key: string; views: ExploredView[] })[] = [];
  for (const [place, view] of views.entries()) {
    const ranked = isRankedFirst(coverage, reading, view);
    const stepSeconds = ranked ? null : view.stepSeconds;
    const { kind } = piecesOf(coverage, { ...reading, ...view, stepSeconds });
    const key = `${ranked} ${stepSeconds} ${kind}`;
    const steps = stepSeconds === null ? 1 : (reading.toMinute - reading.fromMinute) / stepSeconds;
    const set = sets.find((one) => one.key === key && areFew(reading, [...one.views, view], steps));
    if (set) {
      set.places.push(place);
      set.views.push(view);
    } else sets.push({ isRankedFirst: ranked, places: [place], key, views: [view] });
  }
  return sets;
}

/** One value of these leaves few remote addresses. */
const narrowing: readonly ExploredDimension[] = ['address', 'device', 'application', 'peer'];
/** So many times more minutes than those that each read would judge. */
const judgedShare = 10;

/**
 * Whether most of the range is kept by the hour, and steps are shorter than that; or there are so many remote addresses that
 * sums of each in each step would not fit into memory; or what is kept of each minute can be read again and again.
 */
function isRankedFirst(coverage: Coverage, reading: ExploredReading, view: ExploredView): boolean {
  const { by, stepSeconds } = view;
  const { fromMinute, toMinute, filters } = reading;
  if (stepSeconds === null || by.length === 0) return false;
  if (reading.source === 'addresses') return true;
  if (isByName({ ...reading, ...view })) {
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
function areFew(reading: ExploredReading, views: readonly ExploredView[], steps: number): boolean {
  const all = rawNamesOf(views.flatMap((one) => one.by));
  if (views.some((one) => rawNamesOf(one.by).size === all.size)) return true;
  const counts = [...all].map((name) => countOf(reading, name, all));
  return counts.reduce((product, count) => product * count, steps) <= sumsMax;
}

/** Values of a column on a large site, or those that the filters leave. */
function countOf(reading: ExploredReading, name: string, all: ReadonlySet<string>): number {
  const named = (dimension: FilterDimension) =>
    reading.filters.find((one) => one.dimension === dimension && one.is)?.values;
  switch (name) {
    case 'local':
      return localsOf(reading)?.length ?? 2000;
    case 'device_key':
      return named('device')?.length ?? localsOf(reading)?.length ?? 2000;
    case 'name':
      return named('application')?.length ?? 2000;
    case 'peer': {
      const places = splitPlaces(named('peer') ?? ['::/0']);
      return places.networks.length === 0 ? places.addresses.length : 50_000;
    }
    case 'capture_id':
      return 50;
    case 'server_port':
      // An application has few ports.
      return all.has('name') ? 2 : 50;
    case 'segment':
      return 1;
    default:
      return 2;
  }
}
