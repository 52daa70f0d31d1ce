/**
 * The part of an exploration that is of addresses: exact bytes of every kept minute.
 *
 * The sums of all servers are read once; servers, customers, nodes and clusters are added up from them.
 */
import type {
  ExploredCourse,
  ExploredLines,
  ExploredTotal,
  RankedDimension,
  RankedValue,
  Ranking,
  RankOrder,
} from './exploration.ts';
import * as store from './explorer-store.ts';
import type { Opened } from './opened.ts';
import { lineOf, p95Of, rowOrder, sumOf } from './rank-values.ts';
import type { ServerDimension } from './traffic-names.ts';
import type { UsageStep } from './usage-store.ts';

export interface RankOptions {
  limit: number;
  order?: RankOrder;
  isAscending?: boolean;
  hasPercentiles?: boolean;
}

export interface LineOptions {
  count: number;
  hasRest: boolean;
}

export interface UsageReader {
  stepSeconds: number;
  /** All that the filters let pass. */
  bytes(): Promise<{ inboundBytes: number; outboundBytes: number }>;
  total(): Promise<ExploredTotal>;
  course(stepSeconds: number): Promise<ExploredCourse>;
  previousCourse(): Promise<ExploredCourse>;
  rank(dimension: RankedDimension, options: RankOptions): Promise<Ranking>;
  lines(ranking: Ranking, options: LineOptions): Promise<ExploredLines>;
}

/** Rows that one statement of a page may read of minutes or tens before it takes the next coarser sums. */
const rowsMax = 150_000;
/** Addresses of a server, for estimates. */
const addressesOfServer = 2;

/** The finest step of a range that so many servers can have: its own, whole tens of minutes, or whole hours. */
export function stepFor(servers: number, { fromMs, toMs, stepSeconds }: Opened['ask']): number {
  const series = Math.max(1, servers) * addressesOfServer;
  const seconds = (toMs - fromMs) / 1000;
  const ceil = (grain: number) => Math.ceil(stepSeconds / grain) * grain;
  if (stepSeconds % 600 !== 0 && (series * seconds) / 60 <= rowsMax) return stepSeconds;
  // Two hours have too few hours for a chart.
  if ((series * seconds) / 600 <= rowsMax || seconds <= 2 * 3600) return ceil(600);
  return ceil(3600);
}

/** One look's reading: what several of its answers stand on is read once. */
interface Reading extends Opened {
  stepSeconds: number;
  sums: Readonly<Record<'server' | 'address', () => Promise<store.UsageSum[]>>>;
  steps(): Promise<UsageStep[]>;
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => {
    made ??= read();
    return made;
  };
}

export function createUsageReader(opened: Opened): UsageReader {
  const { db, ask, scope, servers, directions } = opened;
  const { fromMs, toMs } = ask;
  const stepSeconds = stepFor(servers.length, ask);
  const stepsOf = (seconds: number) =>
    store.listLineSteps(db, scope, { fromMs, toMs, stepSeconds: seconds }, 'all');
  const sumsBy = (by: 'server' | 'address') =>
    once(() => store.listUsageSums(db, scope, ask, { by, withPrevious: true }));
  const reading: Reading = {
    ...opened,
    stepSeconds,
    sums: { server: sumsBy('server'), address: sumsBy('address') },
    steps: once(() => stepsOf(stepSeconds)),
  };
  return {
    stepSeconds,
    bytes: () => readBytes(reading),
    total: () => readTotal(reading),
    rank: (dimension, options) => rankUsage(reading, dimension, options),
    lines: (ranking, options) => readLines(reading, ranking, options),
    course: async (seconds) =>
      courseOf(await (seconds === stepSeconds ? reading.steps() : stepsOf(seconds)), directions),
    previousCourse: () => readPrevious(reading),
  };
}

const counted = ({ directions }: Reading, inbound: number, outbound: number) =>
  (directions.in ? inbound : 0) + (directions.out ? outbound : 0);

/** Bytes of the directions that count. */
function bytesOf({ directions }: Reading, rows: readonly store.UsageSum[]) {
  return {
    inboundBytes: directions.in ? sumOf(rows, (row) => row.inboundBytes) : 0,
    outboundBytes: directions.out ? sumOf(rows, (row) => row.outboundBytes) : 0,
  };
}

/** Bytes of the time before; null where it was not observed. */
function previousOf(reading: Reading, rows: readonly store.UsageSum[]): number | null {
  if (!rows.some((row) => row.isPreviousObserved)) return null;
  return sumOf(rows, (row) => counted(reading, row.previousInbound, row.previousOutbound));
}

async function readBytes(reading: Reading) {
  return bytesOf(reading, await reading.sums.server());
}

/** Whether the minutes of so many servers are few enough to be read one by one. */
const hasFewMinutes = ({ ask }: Reading, servers: number, most: number) =>
  (servers * addressesOfServer * (ask.toMs - ask.fromMs)) / 60_000 <= most;

async function readTotal(reading: Reading): Promise<ExploredTotal> {
  const { db, scope, ask, directions, servers, stepSeconds } = reading;
  const [rows, course] = await Promise.all([reading.sums.server(), reading.steps()]);
  const hasMinutes = hasFewMinutes(reading, servers.length, rowsMax);
  const [p95] = hasMinutes ? await store.listMinutePercentiles(db, scope, ask, 'all') : [];
  const percentile = (of: 'inbound' | 'outbound', isCounted: boolean) => {
    if (!isCounted) return null;
    return hasMinutes ? (p95?.[`${of}P95`] ?? null) : p95Of(course.map((step) => step[`${of}Bps`]));
  };
  return {
    ...bytesOf(reading, rows),
    previousBytes: previousOf(reading, rows),
    inboundP95: percentile('inbound', directions.in),
    outboundP95: percentile('outbound', directions.out),
    percentileSeconds: hasMinutes ? 60 : stepSeconds,
  };
}

async function rankUsage(
  reading: Reading,
  dimension: RankedDimension,
  { limit, order = 'total', isAscending = false, hasPercentiles = false }: RankOptions,
): Promise<Ranking> {
  const rows = await reading.sums[dimension === 'address' ? 'address' : 'server']();
  const groups = Map.groupBy(rows, (row) =>
    dimension === 'address' ? `${row.serverId} ${row.address}` : nameOf(reading, dimension, row).value,
  );
  const all = sumOf(rows, (row) => counted(reading, row.inboundBytes, row.outboundBytes));
  const values = [...groups.values()]
    .map((of): RankedValue => {
      const bytes = bytesOf(reading, of);
      return {
        ...nameOf(reading, dimension, of[0]!),
        ...{ ...bytes, lastSentAt: null, inboundP95: null, outboundP95: null },
        share: all === 0 ? null : (bytes.inboundBytes + bytes.outboundBytes) / all,
        previousBytes: previousOf(reading, of),
      };
    })
    .filter((row) => row.inboundBytes + row.outboundBytes > 0);
  const wanted = hasPercentiles && dimension === 'server';
  // To be in the order of percentiles all of them are needed, otherwise those of the rows that are shown.
  const isFirst = wanted && order === 'p95';
  const ordered = (isFirst ? await withPercentiles(reading, values) : values).sort(
    rowOrder(order, isAscending),
  );
  const shown = ordered.slice(0, limit);
  const others = ordered.slice(limit);
  return {
    dimension,
    rows: wanted && !isFirst ? await withPercentiles(reading, shown) : shown,
    others: {
      count: others.length,
      inboundBytes: sumOf(others, (row) => row.inboundBytes),
      outboundBytes: sumOf(others, (row) => row.outboundBytes),
    },
    unnamed: null,
  };
}

/** Percentiles are of minutes: without them where there are too many servers for the range. */
async function withPercentiles(reading: Reading, rows: RankedValue[]): Promise<RankedValue[]> {
  const { db, scope, ask, directions } = reading;
  const serverIds = rows.flatMap((row) => row.serverId ?? []);
  if (serverIds.length === 0 || !hasFewMinutes(reading, serverIds.length, 4 * rowsMax)) return rows;
  const read = await store.listMinutePercentiles(db, { ...scope, serverIds }, ask, 'server');
  const found = new Map(read.map((each) => [each.serverId, each]));
  return rows.map((row) => {
    const of = found.get(row.serverId);
    return {
      ...row,
      inboundP95: directions.in ? (of?.inboundP95 ?? null) : null,
      outboundP95: directions.out ? (of?.outboundP95 ?? null) : null,
    };
  });
}

function nameOf({ names }: Reading, dimension: RankedDimension, row: store.UsageSum) {
  if (dimension !== 'address')
    return { service: null, ...names.of(dimension as ServerDimension, row.serverId) };
  const { serverId } = row;
  const tenantId = names.server(serverId)?.tenantId ?? null;
  return { value: row.address!, label: row.address!, service: null, serverId, tenantId };
}

async function readLines(
  reading: Reading,
  { dimension, rows }: Ranking,
  { count, hasRest }: LineOptions,
): Promise<ExploredLines> {
  const top = rows.slice(0, count);
  const [all, read] = await Promise.all([
    reading.steps(),
    top.length === 0 ? [] : readLineSteps(reading, dimension, top),
  ]);
  const times = all.map((step) => step.at);
  const byLine = Map.groupBy(read, (step) => step.id!);
  const named = top.map((row, line) => {
    const of = new Map(
      byLine.get(line)?.map((step) => [step.at.getTime(), lineOf(step, reading.directions)]),
    );
    const rates = times.map((at) => of.get(at.getTime()) ?? null);
    return { value: row.value, label: row.label, isRest: false, rates };
  });
  if (!hasRest) return { times, lines: named };
  const rest = all.map((step, at) => {
    const whole = lineOf(step, reading.directions);
    if (whole === null) return null;
    return Math.max(
      0,
      named.reduce((left, each) => left - (each.rates[at] ?? 0), whole),
    );
  });
  const isNothing = rest.every((rate) => rate === null || rate < 0.5);
  const last = { value: null, label: 'Rest', isRest: true, rates: rest };
  return { times, lines: isNothing ? named : [...named, last] };
}

/** Steps of these rows; the id of a step is the place of its row. */
async function readLineSteps(
  { db, ask, scope, names, sums, stepSeconds }: Reading,
  dimension: RankedDimension,
  top: readonly RankedValue[],
): Promise<UsageStep[]> {
  const range = { fromMs: ask.fromMs, toMs: ask.toMs, stepSeconds };
  if (dimension === 'address') {
    const of = top.map((row, line) => ({ address: row.value!, serverId: row.serverId!, line }));
    const serverIds = of.map(({ serverId }) => serverId);
    return store.listLineSteps(db, { ...scope, serverIds }, range, { addresses: of });
  }
  const lineOfValue = new Map(top.map((row, line) => [row.value, line]));
  const known = await sums.server();
  const of = known.flatMap(({ serverId }) => {
    const line = lineOfValue.get(names.of(dimension as ServerDimension, serverId).value);
    return line === undefined ? [] : [{ id: serverId, line }];
  });
  const serverIds = of.map(({ id }) => id);
  return store.listLineSteps(db, { ...scope, serverIds }, range, { servers: of });
}

async function readPrevious({ db, scope, ask, directions, stepSeconds }: Reading): Promise<ExploredCourse> {
  const { fromMs, toMs } = ask;
  const length = toMs - fromMs;
  const earlier = { fromMs: fromMs - length, toMs: fromMs, stepSeconds };
  const read = await store.listLineSteps(db, scope, earlier, 'all');
  const moved = read.map((step) => ({ ...step, at: new Date(step.at.getTime() + length) }));
  return courseOf(moved, directions);
}

function courseOf(steps: readonly UsageStep[], directions: { in: boolean; out: boolean }): ExploredCourse {
  return {
    times: steps.map((step) => step.at),
    inboundBps: steps.map((step) => (directions.in ? step.inboundBps : null)),
    outboundBps: steps.map((step) => (directions.out ? step.outboundBps : null)),
    inboundBytes: steps.map((step) => step.inboundBytes ?? 0),
    outboundBytes: steps.map((step) => step.outboundBytes ?? 0),
    minutes: steps.map((step) => step.minutes),
  };
}
