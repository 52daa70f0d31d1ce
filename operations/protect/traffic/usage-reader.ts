/**
 * The part of an exploration that is of addresses: exact bytes of every kept minute, and its packets where they are the measure.
 *
 * The sums of all servers are read once; servers, customers, nodes and clusters are added up from them.
 */
import {
  type Amount,
  type Answer,
  compareNames,
  type Measure,
  minus,
  type Ordered,
  orderOf,
  percentile95,
  type Row,
  type Sides,
  shareOut,
  sumOf,
  withoutSteps,
} from '#service-kit/explorer/index.ts';
import {
  largestFirst,
  type Opened,
  once,
  type RankedDimension,
  type RankOptions,
  type Steps,
  type Total,
} from './exploration.ts';
import * as store from './explorer-store.ts';
import { grainOfStep } from './split-range.ts';
import type { ServerDimension } from './traffic-names.ts';
import type { UsageRange } from './usage-store.ts';
import { addUp, amountOf, besideBefore, firstOf, ofSides, previousOf, type UsageSum } from './usage-sums.ts';

/** Rows that one statement of a page may read of minutes or tens before it takes the next coarser sums. */
const rowsMax = 150_000;
/** Addresses of a server, for estimates. */
export const addressesOfServer = 2;

export type UsageReader = ReturnType<typeof createUsageReader>;

/** What several answers stand on is read once. */
interface Reading extends Opened {
  range: UsageRange;
  stepSeconds: number;
  measure: Measure;
  hasPackets: boolean;
  sums: Readonly<Record<'server' | 'address', () => Promise<UsageSum[]>>>;
  course(): Promise<Steps>;
  /** Those that were made: a chart and its table rank the same. */
  ranked: Map<RankedDimension, Promise<Ranked>>;
}

export function createUsageReader(opened: Opened) {
  const { db, ask, scope, servers, sides } = opened;
  const { fromMs, toMs, measure = 'bytes' } = ask;
  const [range, before] = [
    { fromMs, toMs },
    { fromMs: 2 * fromMs - toMs, toMs: fromMs },
  ];
  const stepSeconds = stepFor(servers.length, ask);
  const hasPackets = measure === 'packets';
  const sumsOf = (of: UsageRange) => store.listAddressSums(db, scope, of, { hasPackets });
  const stepsOf = async (of: UsageRange, seconds: number, later = 0) =>
    toSteps(
      await store.listLineSteps(db, scope, { ...of, stepSeconds: seconds, hasPackets }, 'all'),
      opened,
      later,
    );
  // Steps of hours are of the same rows as the sums: one statement reads them for both.
  const withSteps =
    grainOfStep(stepSeconds) === 'hours'
      ? once(() => store.listSumsWithSteps(db, scope, { ...range, stepSeconds, hasPackets }))
      : null;
  // Two statements, so that the larger part of what a page waits for is read at the same time.
  const known = once(async () => {
    const now = withSteps?.().then(({ sums }) => sums) ?? sumsOf(range);
    return besideBefore(sides, ...(await Promise.all([now, sumsOf(before)])));
  });
  const reading: Reading = {
    ...opened,
    ...{ range, stepSeconds, measure, hasPackets, ranked: new Map() },
    sums: {
      server: once(async () => addUp(await known(), ({ serverId }) => serverId)),
      address: once(async () => addUp(await known(), ({ serverId, address }) => `${serverId} ${address}`)),
    },
    course: once(
      () => withSteps?.().then(({ steps }) => toSteps(steps, opened)) ?? stepsOf(range, stepSeconds),
    ),
  };
  return {
    stepSeconds,
    amounts: (): Promise<{ total: Amount; previousTotal: Amount | null }> => readAmounts(reading),
    total: () => readTotal(reading),
    course: reading.course,
    /** In other steps than its own. */
    courseIn: (seconds: number) => (seconds === stepSeconds ? reading.course() : stepsOf(range, seconds)),
    previousCourse: (): Promise<Steps | null> => stepsOf(before, stepSeconds, toMs - fromMs),
    rank: (dimension: RankedDimension, options: RankOptions) => rank(reading, dimension, options),
    rates: (dimension: RankedDimension, rows: readonly Row[]) => readRates(reading, dimension, rows),
    all: reading.course,
    /** What the provider's own port scans caused of all of it in this part of the range. */
    ownScans: async (of: UsageRange) => ofSides(await store.sumOwnScans(db, scope, of), sides),
  };
}

/** The finest step of a range that so many servers can have: its own, whole tens of minutes, or whole hours. */
function stepFor(servers: number, { fromMs, toMs, stepSeconds }: Opened['ask']): number {
  const series = Math.max(1, servers) * addressesOfServer;
  const seconds = (toMs - fromMs) / 1000;
  const ceil = (grain: number) => Math.ceil(stepSeconds / grain) * grain;
  if (stepSeconds % 600 !== 0 && (series * seconds) / 60 <= rowsMax) return stepSeconds;
  // Two hours have too few hours for a chart.
  if ((series * seconds) / 600 <= rowsMax || seconds <= 2 * 3600) return ceil(600);
  return ceil(3600);
}

/** Whether the minutes of so many servers are few enough to be read one by one. */
const hasFewMinutes = ({ range: { fromMs, toMs } }: Reading, servers: number, most: number) =>
  (servers * addressesOfServer * (toMs - fromMs)) / 60_000 <= most;

/** `laterMs`: how much later than they were they are shown. */
function toSteps(steps: readonly store.LineStep[], { sides, ask }: Opened, laterMs = 0): Steps {
  return {
    timesMs: steps.map(({ timeMs }) => timeMs + laterMs),
    inBytes: steps.map(({ inBytes }) => inBytes),
    outBytes: steps.map(({ outBytes }) => outBytes),
    inBps: steps.map(({ inBps }) => (sides.in ? inBps : null)),
    outBps: steps.map(({ outBps }) => (sides.out ? outBps : null)),
    rates: steps.map((step) => rateOf(step, sides, ask.measure)),
    minutes: steps.map(({ minutes }) => minutes),
  };
}

/** Packets per second, or bits per second of the directions that count; null where it is unknown. */
function rateOf({ inBps, outBps, pps }: store.LineStep, sides: Sides, measure?: Measure): number | null {
  if (measure === 'packets') return pps;
  const [inbound, outbound] = [sides.in ? inBps : null, sides.out ? outBps : null];
  return inbound === null && outbound === null ? null : (inbound ?? 0) + (outbound ?? 0);
}

async function readAmounts({ sums }: Reading) {
  const [all] = addUp(await sums.server(), () => 'all');
  return {
    total: all ? amountOf(all) : sumOf([]),
    previousTotal: all ? previousOf(all) : null,
    arePacketsPartial: all?.arePacketsPartial ?? false,
  };
}

async function readTotal(reading: Reading): Promise<Total> {
  const { db, scope, range, sides, servers, stepSeconds, hasPackets } = reading;
  const [amounts, course] = await Promise.all([readAmounts(reading), reading.course()]);
  if (!hasFewMinutes(reading, servers.length, rowsMax))
    return {
      ...amounts,
      percentile95: percentile95(course.rates),
      percentile95In: percentile95(course.inBps),
      percentile95Out: percentile95(course.outBps),
      percentileSeconds: stepSeconds,
    };
  const [p95] = await store.listMinutePercentiles(db, scope, { ...range, hasPackets }, 'all');
  return {
    ...amounts,
    percentile95: hasPackets ? (p95?.percentile95Packets ?? null) : percentile95(course.rates),
    percentile95In: sides.in ? (p95?.percentile95In ?? null) : null,
    percentile95Out: sides.out ? (p95?.percentile95Out ?? null) : null,
    percentileSeconds: 60,
  };
}

/** A value before it is known whether it is shown. */
interface Candidate extends Ordered {
  sum: UsageSum;
}

/** The values of a dimension, and all of them together. */
interface Ranked {
  candidates: readonly Candidate[];
  total: Amount;
}

async function rank(
  reading: Reading,
  dimension: RankedDimension,
  { limit, sort = largestFirst, hasPercentiles = false }: RankOptions,
): Promise<Answer> {
  const { measure, ask, stepSeconds } = reading;
  const { candidates, total } = await readRanked(reading, dimension);
  const nameOf = namerOf(reading, dimension);
  const inOrder = <T extends Ordered>(labelOf: (row: T) => string) => {
    const order = orderOf(sort, measure, labelOf);
    return (a: T, b: T) => order(a, b) || compareNames(labelOf(a), labelOf(b));
  };
  const toRow = ({ sum, amount, previous }: Candidate): Omit<Row, 'share'> => {
    const { value, label, ...details } = nameOf(sum);
    return { key: [{ value, label }], details, amount, previous, rates: [] };
  };
  const isWithPercentiles = hasPercentiles && dimension === 'server';
  const first = () =>
    firstOf(
      candidates,
      limit,
      inOrder<Candidate>(({ sum }) => nameOf(sum).label),
    ).map(toRow);
  // To be in the order of percentiles all of them are needed, otherwise those of the rows that are shown.
  const rows = !isWithPercentiles
    ? first()
    : sort.by !== 'p95'
      ? await withPercentiles(reading, first())
      : firstOf(
          await withPercentiles(reading, candidates.map(toRow)),
          limit,
          inOrder<Omit<Row, 'share'>>(({ key }) => key[0]!.label),
        );
  const counted = (all: readonly Ordered[]) => all.filter(({ amount }) => amount.packets !== null).length;
  const left = minus(total, ...rows.map(({ amount }) => amount));
  const rest = {
    ...{ groups: candidates.length - rows.length, previous: null, rates: [] },
    amount: counted(candidates) > counted(rows) ? left : { ...left, packets: null },
  };
  return {
    ...{ from: ask.fromMs / 1000, to: ask.toMs / 1000, stepSeconds, by: [dimension], limits: [] },
    ...shareOut(measure, total, { rows, rest: rest.groups > 0 ? rest : null, apart: [] }),
    ...{ previousTotal: null, ...withoutSteps },
  };
}

/** Percentiles are of minutes: without them where there are too many servers for the range. */
async function withPercentiles(
  reading: Reading,
  rows: readonly Omit<Row, 'share'>[],
): Promise<readonly Omit<Row, 'share'>[]> {
  const { db, scope, range, sides } = reading;
  const serverIds = rows.flatMap(({ details }) => details?.serverId ?? []);
  if (serverIds.length === 0 || !hasFewMinutes(reading, serverIds.length, 4 * rowsMax)) return rows;
  const asked = { ...range, hasPackets: false };
  const read = await store.listMinutePercentiles(db, { ...scope, serverIds }, asked, 'server');
  const found = new Map(read.map((each) => [each.serverId, each]));
  return rows.map((row) => {
    const of = found.get(row.details!.serverId);
    const percentile95In = sides.in ? (of?.percentile95In ?? null) : null;
    const percentile95Out = sides.out ? (of?.percentile95Out ?? null) : null;
    return { ...row, details: { ...row.details!, percentile95In, percentile95Out } };
  });
}

function readRanked(reading: Reading, dimension: RankedDimension): Promise<Ranked> {
  const read = reading.ranked.get(dimension) ?? makeRanked(reading, dimension);
  reading.ranked.set(dimension, read);
  return read;
}

async function makeRanked({ sums, names }: Reading, dimension: RankedDimension): Promise<Ranked> {
  const groups =
    dimension === 'address'
      ? await sums.address()
      : dimension === 'server'
        ? await sums.server()
        : addUp(await sums.server(), ({ serverId }) =>
            names.filterValueOf(dimension as ServerDimension, serverId),
          );
  const candidates = groups
    .filter(({ inBytes, outBytes }) => inBytes + outBytes > 0)
    .map((sum): Candidate => ({ sum, amount: amountOf(sum), previous: previousOf(sum) }));
  return { candidates, total: sumOf(candidates.map(({ amount }) => amount)) };
}

/** Most values are not shown, so they are named when it is asked for. */
function namerOf({ names }: Reading, dimension: RankedDimension) {
  const known = new Map<UsageSum, ReturnType<typeof names.of>>();
  return (sum: UsageSum) => {
    const name =
      known.get(sum) ??
      (dimension === 'address' ? names.ofAddress(sum) : names.of(dimension as ServerDimension, sum.serverId));
    known.set(sum, name);
    return name;
  };
}

async function readRates(reading: Reading, dimension: RankedDimension, rows: readonly Row[]) {
  const [{ timesMs }, steps] = await Promise.all([
    reading.course(),
    rows.length === 0 ? [] : listLines(reading, dimension, rows),
  ]);
  const byLine = Map.groupBy(steps, (step) => step.id!);
  return rows.map((_, line) => {
    const rates = new Map(
      byLine.get(line)?.map((step) => [step.timeMs, rateOf(step, reading.sides, reading.measure)]),
    );
    return timesMs.map((ms) => rates.get(ms) ?? null);
  });
}

/** Steps of these rows; the id of a step is the place of its row. */
async function listLines(
  { db, scope, range, stepSeconds, hasPackets, names, sums }: Reading,
  dimension: RankedDimension,
  rows: readonly Row[],
): Promise<store.LineStep[]> {
  const asked = { ...range, stepSeconds, hasPackets };
  const list = (serverIds: number[], of: store.LinesOf) =>
    store.listLineSteps(db, { ...scope, serverIds }, asked, of);
  if (dimension === 'address') {
    const addresses = rows.map(({ key, details }, line) => ({
      ...{ address: key[0]!.value!, serverId: details!.serverId!, line },
    }));
    return list(
      addresses.map(({ serverId }) => serverId),
      { addresses },
    );
  }
  const lines = new Map(rows.map(({ key }, line) => [key[0]!.value, line]));
  const servers =
    dimension === 'server'
      ? rows.map(({ details }, line) => ({ id: details!.serverId!, line }))
      : (await sums.server()).flatMap(({ serverId }) => {
          const line = lines.get(names.filterValueOf(dimension as ServerDimension, serverId));
          return line === undefined ? [] : [{ id: serverId, line }];
        });
  return list(
    servers.map(({ id }) => id),
    { servers },
  );
}
