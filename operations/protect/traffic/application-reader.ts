/** The part of an exploration that is of applications, as far back as they are shown (NET-2.4.4). */
import * as store from './application-store.ts';
import type {
  ExplorationAsk,
  ExploredCourse,
  ExploredLine,
  ExploredLines,
  ExploredTotal,
  Flow,
  RankedDimension,
  RankedValue,
  Ranking,
} from './exploration.ts';
import { namesApplications, serviceOf } from './explore.ts';
import type { Opened } from './opened.ts';
import { p95Of, rowOrder, sumOf } from './rank-values.ts';
import type { ServerDimension } from './traffic-names.ts';
import type { LineOptions, RankOptions, UsageReader } from './usage-reader.ts';

/** How long an application is shown (NET-2.4.4). */
const shownMs = 86_400_000;
const hourMs = 3_600_000;
/** Minutes with applications that one statement of a page may read before it takes hours. */
const minutesMax = 60_000;
const addressesOfServer = 2;
/** Rows of which others are added up: as many as there can be servers. */
const unlimited = 1_000_000;

export interface ApplicationReader {
  stepSeconds: number;
  total(usage: UsageReader): Promise<ExploredTotal>;
  course(usage: UsageReader): Promise<ExploredCourse>;
  rank(dimension: RankedDimension, options: RankOptions, usage: UsageReader): Promise<Ranking>;
  lines(ranking: Ranking, options: LineOptions, usage: UsageReader): Promise<ExploredLines>;
  /** Applications of servers, largest first. */
  flows(limit: number): Promise<Flow[]>;
}

export interface ApplicationWindow {
  fromMs: number;
  toMs: number;
  shownFromMs: number;
  /** The same length of time before; null where it is not shown any more. */
  before: { fromMs: number; toMs: number } | null;
  /** Applications begin later than the range. */
  isShorter: boolean;
}

/** The part of a range that applications are shown for; what begins with them begins on a whole hour. */
export function windowOf({ ask, nowMs }: { ask: ExplorationAsk; nowMs: number }): ApplicationWindow {
  const shownFromMs = nowMs - shownMs;
  const isShorter = ask.fromMs < shownFromMs;
  const fromMs = isShorter ? Math.ceil(shownFromMs / hourMs) * hourMs : ask.fromMs;
  const toMs = Math.max(ask.toMs, fromMs);
  const before = { fromMs: 2 * ask.fromMs - ask.toMs, toMs: ask.fromMs };
  return { fromMs, toMs, shownFromMs, isShorter, before: before.fromMs >= shownFromMs ? before : null };
}

/** A step that holds whole hours where minutes would be too many. */
function applicationStep(servers: number, { fromMs, toMs, stepSeconds }: ExplorationAsk): number {
  const minutes = (Math.max(1, servers) * addressesOfServer * (toMs - fromMs)) / 60_000;
  if (minutes <= minutesMax || toMs - fromMs <= 2 * hourMs) return stepSeconds;
  return Math.ceil(stepSeconds / 3600) * 3600;
}

const groupOf: Readonly<Record<RankedDimension, store.ApplicationGroup>> = {
  app: 'app',
  service: 'service',
  port: 'port',
  transport: 'transport',
  address: 'address',
  server: 'server',
  customer: 'server',
  node: 'server',
  cluster: 'server',
};

/** One look's reading of applications. */
interface Reading extends Opened {
  window: ApplicationWindow;
  stepSeconds: number;
  /** The filters name applications, so that these alone count. */
  isFiltered: boolean;
  /** Sums that were read: a chart and its table ask for the same. */
  known: Map<string, Promise<store.ApplicationSum[]>>;
}

export function createApplicationReader(opened: Opened): ApplicationReader {
  const { ask, servers } = opened;
  const reading: Reading = {
    ...opened,
    window: windowOf(opened),
    stepSeconds: applicationStep(servers.length, ask),
    isFiltered: namesApplications(ask.filters),
    known: new Map(),
  };
  return {
    stepSeconds: reading.stepSeconds,
    total: (usage) => readTotal(reading, usage),
    course: (usage) => readCourse(reading, usage),
    rank: (dimension, options, usage) => rankApplications(reading, dimension, options, usage),
    lines: (ranking, options, usage) => readLines(reading, ranking, options, usage),
    flows: (limit) => readFlows(reading, limit),
  };
}

const queryOf = ({ window, ask, directions }: Reading) => ({ ...window, filters: ask.filters, directions });
const inOf = ({ directions }: Reading, bytes: number) => (directions.in ? bytes : 0);
const outOf = ({ directions }: Reading, bytes: number) => (directions.out ? bytes : 0);
const previousOf = (reading: Reading, row: store.ApplicationSum) =>
  inOf(reading, row.previousInbound) + outOf(reading, row.previousOutbound);

function listSums(
  reading: Reading,
  by: store.ApplicationGroup,
  limit: number,
  { order, isAscending = false }: Pick<RankOptions, 'order' | 'isAscending'> = {},
): Promise<store.ApplicationSum[]> {
  const known = store.applicationOrders.find((each) => each === order) ?? 'total';
  const query = { ...queryOf(reading), by, order: known, isAscending, limit };
  const key = JSON.stringify([by, known, isAscending, limit]);
  const found = reading.known.get(key) ?? store.listApplicationSums(reading.db, reading.scope, query);
  reading.known.set(key, found);
  return found;
}

type Nameable = Pick<store.ApplicationSum, 'serverId' | 'address' | 'name' | 'transport' | 'serverPort'>;
type Named = Pick<RankedValue, 'value' | 'label' | 'service' | 'serverId' | 'tenantId'>;

function nameOf({ names }: Reading, row: Nameable, dimension: RankedDimension): Named {
  const none = { serverId: null, tenantId: null, service: null };
  switch (dimension) {
    case 'app':
      return { ...none, value: row.name, label: row.name! };
    case 'service':
      return { ...none, value: row.name, label: row.name!, service: serviceOf(row) };
    case 'port': {
      const label = serviceOf(row);
      return { ...none, value: row.serverPort === null ? null : label, label };
    }
    case 'transport':
      return { ...none, value: row.transport, label: row.transport ?? 'unknown' };
    case 'address': {
      const serverId = row.serverId!;
      const tenantId = names.server(serverId)?.tenantId ?? null;
      return { ...none, value: row.address, label: row.address!, serverId, tenantId };
    }
    default:
      return { service: null, ...names.of(dimension as ServerDimension, row.serverId!) };
  }
}

async function rankApplications(
  reading: Reading,
  dimension: RankedDimension,
  options: RankOptions,
  usage: UsageReader,
): Promise<Ranking> {
  const isByServer = groupOf[dimension] === 'server';
  const [rows, whole] = await Promise.all([
    listSums(reading, groupOf[dimension], isByServer ? unlimited : options.limit, options),
    reading.isFiltered || reading.window.isShorter ? null : usage.bytes(),
  ]);
  const all = {
    inboundBytes: inOf(reading, rows[0]?.allInbound ?? 0),
    outboundBytes: outOf(reading, rows[0]?.allOutbound ?? 0),
  };
  const groups = Map.groupBy(rows, (row) => JSON.stringify(nameOf(reading, row, dimension)));
  const values = [...groups.values()].map((of) => toValue(reading, dimension, of, whole ?? all));
  if (isByServer) values.sort(rowOrder(options.order ?? 'total', options.isAscending ?? false));
  const shown = values.slice(0, options.limit);
  const count = isByServer ? values.length : (rows[0]?.groups ?? 0);
  return {
    dimension,
    rows: shown,
    others: {
      count: count - shown.length,
      inboundBytes: all.inboundBytes - sumOf(shown, (row) => row.inboundBytes),
      outboundBytes: all.outboundBytes - sumOf(shown, (row) => row.outboundBytes),
    },
    unnamed: whole && {
      inboundBytes: Math.max(0, whole.inboundBytes - all.inboundBytes),
      outboundBytes: Math.max(0, whole.outboundBytes - all.outboundBytes),
    },
  };
}

function toValue(
  reading: Reading,
  dimension: RankedDimension,
  of: readonly store.ApplicationSum[],
  all: { inboundBytes: number; outboundBytes: number },
): RankedValue {
  const inboundBytes = inOf(
    reading,
    sumOf(of, (row) => row.inboundBytes),
  );
  const outboundBytes = outOf(
    reading,
    sumOf(of, (row) => row.outboundBytes),
  );
  const bytes = all.inboundBytes + all.outboundBytes;
  return {
    ...nameOf(reading, of[0]!, dimension),
    ...{ inboundBytes, outboundBytes, inboundP95: null, outboundP95: null },
    share: bytes === 0 ? null : (inboundBytes + outboundBytes) / bytes,
    previousBytes: reading.window.before === null ? null : sumOf(of, (row) => previousOf(reading, row)),
    lastSentAt: new Date(Math.max(...of.map((row) => row.lastSentAt.getTime()))),
  };
}

/** Bytes of steps as rates over the minutes that were observed; null before applications are known. */
function ratesOf(
  { window }: Reading,
  course: ExploredCourse,
  bytesAt: (index: number) => number,
): (number | null)[] {
  return course.times.map((at, index) => {
    const minutes = course.minutes[index]!;
    if (minutes === 0 || at.getTime() < window.fromMs) return null;
    return (bytesAt(index) * 8) / (minutes * 60);
  });
}

function listSteps(
  reading: Reading,
  by: store.ApplicationGroup,
  { names, serverIds }: { names?: string[] | undefined; serverIds?: number[] | undefined } = {},
): Promise<store.ApplicationStep[]> {
  const { db, scope, stepSeconds } = reading;
  return store.listApplicationSteps(db, serverIds === undefined ? scope : { ...scope, serverIds }, {
    ...{ ...queryOf(reading), by, stepSeconds },
    ...(names === undefined ? {} : { names }),
  });
}

const keyOf = ({ value, label, service }: Pick<Named, 'value' | 'label' | 'service'>) =>
  JSON.stringify([value, label, service]);

async function readLines(
  reading: Reading,
  { dimension, rows }: Ranking,
  { count, hasRest }: LineOptions,
  usage: UsageReader,
): Promise<ExploredLines> {
  const top = rows.slice(0, count);
  // What is left is the other applications where they alone count, and all other traffic otherwise.
  const needsOthers = hasRest && reading.isFiltered;
  const isByName = dimension === 'app' || dimension === 'service';
  const only = {
    names: isByName && !needsOthers ? top.map(({ label }) => label) : undefined,
    serverIds:
      dimension === 'server' && !needsOthers ? top.flatMap(({ serverId }) => serverId ?? []) : undefined,
  };
  const [course, steps] = await Promise.all([
    usage.course(reading.stepSeconds),
    listSteps(reading, groupOf[dimension], only),
  ]);
  const isTop = new Set(top.map(keyOf));
  const lineOf = (step: store.ApplicationStep) => {
    const key = keyOf(nameOf(reading, step, dimension));
    return isTop.has(key) ? key : 'rest';
  };
  const byLine = new Map<string, Map<number, number>>();
  for (const step of steps) {
    const bytes = byLine.get(lineOf(step)) ?? new Map<number, number>();
    const at = step.at.getTime();
    const more = inOf(reading, step.inboundBytes) + outOf(reading, step.outboundBytes);
    bytes.set(at, (bytes.get(at) ?? 0) + more);
    byLine.set(lineOf(step), bytes);
  }
  const ratesOfLine = (line: string) =>
    ratesOf(reading, course, (index) => byLine.get(line)?.get(course.times[index]!.getTime()) ?? 0);
  const named = top.map((row) => ({
    ...{ value: row.value, label: row.service ? `${row.label} ${row.service}` : row.label, isRest: false },
    rates: ratesOfLine(keyOf(row)),
  }));
  const { times } = course;
  if (!hasRest) return { times, lines: named };
  const rest = needsOthers ? ratesOfLine('rest') : restOf(reading, course, named);
  const isNothing = rest.every((rate) => rate === null || rate < 0.5);
  const last = { value: null, label: 'Rest', isRest: true, rates: rest };
  return { times, lines: isNothing ? named : [...named, last] };
}

/** All traffic without these lines. */
function restOf(reading: Reading, course: ExploredCourse, named: readonly ExploredLine[]): (number | null)[] {
  const whole = ratesOf(
    reading,
    course,
    (index) => inOf(reading, course.inboundBytes[index]!) + outOf(reading, course.outboundBytes[index]!),
  );
  return whole.map((rate, index) => {
    if (rate === null) return null;
    return Math.max(
      0,
      named.reduce((left, each) => left - (each.rates[index] ?? 0), rate),
    );
  });
}

async function readCourse(reading: Reading, usage: UsageReader): Promise<ExploredCourse> {
  const { directions, stepSeconds } = reading;
  const [observed, steps] = await Promise.all([usage.course(stepSeconds), listSteps(reading, 'all')]);
  const byTime = new Map(steps.map((step) => [step.at.getTime(), step]));
  const bytes = (of: 'inboundBytes' | 'outboundBytes') =>
    observed.times.map((at) => byTime.get(at.getTime())?.[of] ?? 0);
  const [inboundBytes, outboundBytes] = [bytes('inboundBytes'), bytes('outboundBytes')];
  const side = (of: number[], isCounted: boolean) =>
    isCounted ? ratesOf(reading, observed, (index) => of[index]!) : observed.times.map(() => null);
  return {
    ...{ times: observed.times, minutes: observed.minutes, inboundBytes, outboundBytes },
    inboundBps: side(inboundBytes, directions.in),
    outboundBps: side(outboundBytes, directions.out),
  };
}

async function readTotal(reading: Reading, usage: UsageReader): Promise<ExploredTotal> {
  const [[row], of] = await Promise.all([listSums(reading, 'all', 1), readCourse(reading, usage)]);
  return {
    inboundBytes: inOf(reading, row?.inboundBytes ?? 0),
    outboundBytes: outOf(reading, row?.outboundBytes ?? 0),
    previousBytes: reading.window.before === null ? null : row === undefined ? 0 : previousOf(reading, row),
    inboundP95: p95Of(of.inboundBps),
    outboundP95: p95Of(of.outboundBps),
    percentileSeconds: reading.stepSeconds,
  };
}

async function readFlows(reading: Reading, limit: number): Promise<Flow[]> {
  const rows = await listSums(reading, 'flow', limit);
  return rows.map((row) => ({
    customer: reading.names.of('customer', row.serverId!),
    server: reading.names.of('server', row.serverId!),
    application: { value: row.name!, label: row.name! },
    bytes: inOf(reading, row.inboundBytes) + outOf(reading, row.outboundBytes),
  }));
}
