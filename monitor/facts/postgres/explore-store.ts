/**
 * Sums of a range over any filters, of one or several views: views that are made of the same rows by one statement; or, where it is
 * cheap to ask which rows are the largest, by one for those and one for the steps of everything and of these rows: sums of every key in every
 * step cost more than reading again. One more says what listened.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Explored, ExploredFilter, ExploredReading, ExploredView } from '../contract/exploration.ts';
import { listDeviceAddresses } from './device-store.ts';
import { divideViews, type Way } from './divide-views.ts';
import { localsOf } from './explore-pieces-store.ts';
import { listObserved } from './observed-store.ts';
import type { PieceQuery } from './pieces.ts';
import type { Coverage } from './span-store.ts';
import { type SummedView, type Sums, sumViews, Undecided } from './sum-views-store.ts';

/** All reads are of the transaction's snapshot, so steps belong to the sums. */
export async function explore(
  db: Queryable,
  coverage: Coverage,
  asked: ExploredReading,
  views: readonly ExploredView[],
): Promise<Explored[]> {
  const reading = await narrowToAddresses(db, coverage, asked);
  const found = await sumDivided(db, coverage, reading, views);
  const observe = oncePerStep((stepSeconds) => listObserved(db, asked, stepSeconds));
  const explored: Explored[] = [];
  for (const [place, { stepSeconds }] of views.entries())
    explored.push({ ...found[place]!, observed: stepSeconds === null ? [] : await observe(stepSeconds) });
  return explored;
}

/** In the order of the views. */
async function sumDivided(
  db: Queryable,
  coverage: Coverage,
  reading: PieceQuery,
  views: readonly ExploredView[],
): Promise<Sums[]> {
  const sum = (of: PieceQuery, all: readonly SummedView[]) => sumViews(db, coverage, of, all);
  const sumAll = oncePerStep(async (stepSeconds) => {
    const everything: ExploredView = { by: [], stepSeconds, order: 'size', rows: { keys: [] } };
    return (await sum(reading, [everything]))[0]!;
  });
  const found: Sums[] = [];
  try {
    for (const set of divideViews(coverage, reading, views)) {
      const ofSet = set.places.map((place) => views[place]!);
      const sums = await sumSet({ reading, sum, sumAll }, set.way, ofSet);
      for (const [i, place] of set.places.entries()) found[place] = sums[i]!;
    }
  } catch (error) {
    if (!(error instanceof Undecided)) throw error;
    return sumDivided(db, coverage, { ...reading, isDirect: true }, views);
  }
  return found;
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

interface Reads {
  reading: PieceQuery;
  sum: (of: PieceQuery, views: readonly SummedView[]) => Promise<Sums[]>;
  sumAll: (stepSeconds: number) => Promise<Sums>;
}

async function sumSet(reads: Reads, way: Way, views: readonly ExploredView[]): Promise<Sums[]> {
  const { reading, sum, sumAll } = reads;
  const [{ by, stepSeconds }] = views as [ExploredView];
  if (way === 'once') {
    if (by.length === 0 && views.length === 1 && stepSeconds !== null) return [await sumAll(stepSeconds)];
    return sum(reading, views);
  }
  const largest = await sum(
    reading,
    views.map((view) => ({ ...view, stepSeconds: null })),
  );
  const shown = views.map((view, i) => {
    const keys = largest[i]!.rows.map((one) => one.key);
    return { ...view, rows: { keys }, keyed: filtersOf(reading, view, keys) };
  });
  if (way === 'ranked') {
    const steps = await sum(reading, shown);
    return views.map((_, i) => withSteps(largest[i]!, steps[i]!, steps[i]!));
  }
  const everything = await sumAll(stepSeconds!);
  const ofRows = await sumRows(reads, shown);
  return views.map((_, i) => withSteps(largest[i]!, everything, ofRows[i]!));
}

type Keyed = ExploredView & { keyed: readonly ExploredFilter[] };

/** The steps of rows. Views that are about local addresses are one read, since these are mostly the same ones. */
async function sumRows({ reading, sum }: Reads, views: readonly Keyed[]): Promise<Sums[]> {
  const found: Sums[] = [];
  const read = async (places: readonly number[], of: Partial<ExploredReading>, all: SummedView[]) => {
    const sums = await sum({ ...reading, ...of }, all);
    for (const [n, place] of places.entries()) found[place] = sums[n]!;
  };
  const locals = views.map(({ keyed }) => (keyed.length === 1 ? localsOf({ filters: keyed }) : null));
  const ofLocals = [...views.keys()].filter((place) => locals[place] !== null);
  if (ofLocals.length > 0) {
    const values = new Set(locals.flatMap((one) => one ?? []));
    const filters: ExploredFilter[] = [
      ...reading.filters,
      { dimension: 'address', is: true, values: [...values] },
    ];
    const owners = reading.owners.filter(({ address }) => values.has(address));
    const all = ofLocals.map((place) => ({ ...views[place]!, keyed: [], only: views[place]!.keyed }));
    await read(ofLocals, { filters, owners }, all);
  }
  for (const [place, { keyed, ...view }] of views.entries())
    if (locals[place] === null) await read([place], { filters: [...reading.filters, ...keyed] }, [view]);
  return found;
}

/** Sums without steps, with the steps of everything and of their rows. */
function withSteps(sums: Sums, everything: Sums, ofRows: Sums): Sums {
  const grains = new Set([...sums.grains, ...everything.grains, ...ofRows.grains]);
  const placeOf = new Map(sums.rows.map(({ key }, place) => [JSON.stringify(key), place]));
  const ofAll = everything.steps.filter((step) => step.row === null);
  const rowSteps = ofRows.steps
    .filter((step) => step.row !== null)
    .map((step) => ({ ...step, row: placeOf.get(JSON.stringify(ofRows.rows[step.row!]!.key))! }))
    .sort((a, b) => a.row - b.row || a.timeMs - b.timeMs);
  return { ...sums, steps: [...ofAll, ...rowSteps], grains: [...grains].sort() };
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
