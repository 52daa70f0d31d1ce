/** The part of an exploration that is of applications, as far back as they are shown (NET-2.4.4). */
import {
  type Amount,
  type Answer,
  minus,
  orderOf,
  percentile95,
  type Row,
  type RowDetails,
  shareOut,
  sizeOf,
  sumOf,
  type Value,
  withoutSteps,
} from '#service-kit/explorer/index.ts';
import * as store from './application-store.ts';
import {
  type ExplorationAsk,
  largestFirst,
  namesApplications,
  type Opened,
  once,
  type RankedDimension,
  type RankOptions,
  type Steps,
  type Total,
} from './exploration.ts';
import { noDetails, type ServerDimension } from './traffic-names.ts';
import { addressesOfServer, type UsageReader } from './usage-reader.ts';
import { ofSides } from './usage-sums.ts';

/** How long an application is shown (NET-2.4.4). */
const shownMs = 86_400_000;
const hourMs = 3_600_000;
/** Minutes with applications that one statement of a page may read before it takes hours. */
const minutesMax = 60_000;
/** Rows of which others are added up: as many as there can be servers. */
const unlimited = 1_000_000;

/** What an application of a server used. */
export interface Flow {
  server: Value;
  application: Value;
  bytes: number;
}

interface Window {
  fromMs: number;
  toMs: number;
  shownFromMs: number;
  /** The same length of time before; null where it is not shown any more. */
  before: { fromMs: number; toMs: number } | null;
  /** Applications begin later than the range. */
  isShorter: boolean;
}

/** What several answers stand on is read once. */
interface Reading extends Opened {
  usage: UsageReader;
  window: Window;
  stepSeconds: number;
  /** The filters name applications, so that these alone count. */
  isFiltered: boolean;
  /** Sums that were read: a chart and its table ask for the same. */
  sums: Map<string, Promise<store.ApplicationSum[]>>;
  /** Those that a row was made of. */
  sumsOf: WeakMap<Value, readonly store.ApplicationSum[]>;
  /** Of everything, in its steps. */
  observed(): Promise<Steps>;
  course(): Promise<Steps>;
}

export function createApplicationReader(opened: Opened, usage: UsageReader) {
  const { ask, servers } = opened;
  const stepSeconds = applicationStep(servers.length, ask);
  const reading: Reading = {
    ...{
      ...opened,
      usage,
      stepSeconds,
      window: windowOf(opened),
      isFiltered: namesApplications(ask.filters),
    },
    ...{ sums: new Map(), sumsOf: new WeakMap() },
    observed: once(() => usage.courseIn(stepSeconds)),
    course: once(() => readCourse(reading)),
  };
  return {
    ...{
      stepSeconds,
      /** When they begin, where that is later than the range. */
      beginMs: reading.window.isShorter ? reading.window.fromMs : null,
    },
    amounts: () => readAmounts(reading),
    total: () => readTotal(reading),
    course: reading.course,
    previousCourse: (): Promise<Steps | null> => Promise.resolve(null),
    rank: (dimension: RankedDimension, options: RankOptions) => rank(reading, dimension, options),
    rates: (dimension: RankedDimension, rows: readonly Row[]) => readRates(reading, dimension, rows),
    all: () => (reading.isFiltered ? reading.course() : readAll(reading)),
    /** Applications of servers, largest first. */
    flows: (limit: number) => readFlows(reading, limit),
  };
}

/** The part of a range that applications are shown for; what begins with them begins on a whole hour. */
function windowOf({ ask, nowMs }: Pick<Opened, 'ask' | 'nowMs'>): Window {
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
  application: 'app',
  service: 'service',
  port: 'port',
  transport: 'transport',
  address: 'address',
  server: 'server',
  customer: 'server',
  node: 'server',
  cluster: 'server',
};

/** `tcp/443`, or what is known of it. */
function serviceOf({ transport, serverPort }: store.ApplicationKey): string {
  if (transport === null) return serverPort === null ? 'unknown' : String(serverPort);
  return serverPort === null ? transport : `${transport}/${serverPort}`;
}

function nameOf(
  { names }: Reading,
  of: store.ApplicationKey,
  dimension: RankedDimension,
): Value & RowDetails {
  switch (dimension) {
    case 'application':
      return { ...noDetails, value: of.name, label: of.name! };
    case 'service':
      return { ...noDetails, value: of.name, label: of.name!, service: serviceOf(of) };
    case 'port': {
      const label = serviceOf(of);
      return { ...noDetails, value: of.serverPort === null ? null : label, label };
    }
    case 'transport':
      return { ...noDetails, value: of.transport, label: of.transport ?? 'unknown' };
    case 'address':
      return names.ofAddress({ address: of.address!, serverId: of.serverId! });
    default:
      return names.of(dimension as ServerDimension, of.serverId!);
  }
}

const queryOf = ({ window, ask, sides }: Reading) => ({ ...window, filters: ask.filters, sides });

function listSums(
  reading: Reading,
  by: store.ApplicationGroup,
  limit: number,
  sort = largestFirst,
): Promise<store.ApplicationSum[]> {
  const { db, scope, sums, stepSeconds } = reading;
  const key = JSON.stringify([by, sort.by, sort.direction, limit]);
  const found =
    sums.get(key) ??
    store.listApplicationSums(db, scope, { ...queryOf(reading), by, order: sort, limit, stepSeconds });
  sums.set(key, found);
  return found;
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

/** Packets are not known by application. */
const amountOf = ({ sides }: Reading, sums: readonly store.ApplicationSum[]): Amount =>
  ofSides(sumOf(sums.map(({ inBytes, outBytes }) => ({ inBytes, outBytes, packets: null }))), sides);

/** Null where the time before is not shown any more. */
const previousOf = ({ sides, window }: Reading, sums: readonly store.ApplicationSum[]): Amount | null =>
  window.before &&
  ofSides(
    sumOf(sums.map((one) => ({ inBytes: one.previousIn, outBytes: one.previousOut, packets: null }))),
    sides,
  );

async function readAmounts(reading: Reading) {
  const sums = await listSums(reading, 'all', 1);
  return { total: amountOf(reading, sums), previousTotal: previousOf(reading, sums) };
}

async function readTotal(reading: Reading): Promise<Total> {
  const [amounts, course] = await Promise.all([readAmounts(reading), reading.course()]);
  return {
    ...amounts,
    percentile95: percentile95(course.rates),
    percentile95In: percentile95(course.inBps),
    percentile95Out: percentile95(course.outBps),
    percentileSeconds: reading.stepSeconds,
    arePacketsPartial: false,
  };
}

/** Of everything that counts; its bytes where they were not read beside its sum. */
async function readCourse(reading: Reading): Promise<Steps> {
  const { sides, observed } = reading;
  const [seen, steps] = await Promise.all([
    observed(),
    listSums(reading, 'all', 1).then(([sum]) => sum?.steps ?? listSteps(reading, 'all')),
  ]);
  const byTime = new Map(steps.map((step) => [step.at.getTime(), step]));
  const [inBytes, outBytes] = (['inBytes', 'outBytes'] as const).map((of) =>
    seen.timesMs.map((ms) => byTime.get(ms)?.[of] ?? 0),
  ) as [number[], number[]];
  const none = seen.timesMs.map(() => null);
  const course = { timesMs: seen.timesMs, minutes: seen.minutes, inBytes, outBytes };
  return {
    ...course,
    inBps: sides.in ? toRates(reading, seen, inBytes) : none,
    outBps: sides.out ? toRates(reading, seen, outBytes) : none,
    rates: sides.in || sides.out ? toRates(reading, seen, bytesOf(reading, course)) : none,
  };
}

/** Bytes of steps as rates over the minutes that were observed; null before applications are known. */
function toRates({ window }: Reading, { timesMs, minutes }: Steps, bytes: readonly number[]) {
  return timesMs.map((ms, index) =>
    minutes[index] === 0 || ms < window.fromMs ? null : (bytes[index]! * 8) / (minutes[index]! * 60),
  );
}

/** Of both directions, of those that count. */
const bytesOf = ({ sides }: Reading, { inBytes, outBytes }: Pick<Steps, 'inBytes' | 'outBytes'>) =>
  inBytes.map((bytes, index) => (sides.in ? bytes : 0) + (sides.out ? outBytes[index]! : 0));

/** All traffic: what applications don't have of it is left. */
async function readAll(reading: Reading): Promise<Steps> {
  const observed = await reading.observed();
  return { ...observed, rates: toRates(reading, observed, bytesOf(reading, observed)) };
}

async function rank(
  reading: Reading,
  dimension: RankedDimension,
  { limit, sort = largestFirst }: RankOptions,
): Promise<Answer> {
  const { isFiltered, window, usage, ask, sides, scope, stepSeconds, sumsOf } = reading;
  const isByServer = groupOf[dimension] === 'server';
  const [sums, whole, ownScans] = await Promise.all([
    listSums(reading, groupOf[dimension], isByServer ? unlimited : limit, sort),
    isFiltered || window.isShorter ? null : usage.amounts().then(({ total }) => total),
    isFiltered ? null : usage.ownScans(window),
  ]);
  const groups = Map.groupBy(sums, (sum) => JSON.stringify(nameOf(reading, sum, dimension)));
  const rows = [...groups.values()].map((of): Omit<Row, 'share'> => {
    const { value, label, ...details } = nameOf(reading, of[0]!, dimension);
    const key = { value, label };
    sumsOf.set(key, of);
    const lastSentMs = Math.max(...of.map(({ lastSentAt }) => lastSentAt.getTime()));
    return {
      ...{ key: [key], details: { ...details, lastSentMs }, rates: [] },
      ...{ amount: amountOf(reading, of), previous: previousOf(reading, of) },
    };
  });
  if (isByServer) rows.sort(orderOf(sort, 'bytes', ({ key }) => key[0]!.label));
  const shown = rows.slice(0, limit);
  const [{ allIn = 0, allOut = 0 } = {}] = sums;
  const all = ofSides({ inBytes: allIn, outBytes: allOut, packets: null }, sides);
  const rest = {
    ...{
      groups: (isByServer ? rows.length : (sums[0]?.groups ?? 0)) - shown.length,
      previous: null,
      rates: [],
    },
    amount: minus(all, ...shown.map(({ amount }) => amount)),
  };
  const beside = [
    {
      label: `Port scans by ${scope.tenantIds === 'all' ? 'the sensors' : 'your provider'}`,
      amount: ownScans,
    },
    { label: 'Unclassified', amount: whole && minus(whole, all, ...(ownScans ? [ownScans] : [])) },
  ].flatMap(({ label, amount }) =>
    amount !== null && sizeOf(amount, 'bytes')! > 0 ? [{ label, amount, previous: null, rates: [] }] : [],
  );
  const total = sumOf([all, ...beside.map(({ amount }) => amount)]);
  return {
    ...{ from: ask.fromMs / 1000, to: ask.toMs / 1000, stepSeconds, by: [dimension], limits: [] },
    ...shareOut('bytes', total, { rows: shown, rest: rest.groups > 0 ? rest : null, apart: beside }),
    ...{ previousTotal: null, ...withoutSteps },
  };
}

async function readRates(reading: Reading, dimension: RankedDimension, rows: readonly Row[]) {
  const sums = rows.map(({ key }) => reading.sumsOf.get(key[0]!)!);
  const [observed, steps] = await Promise.all([
    reading.observed(),
    listStepsOf(reading, dimension, sums.flat()),
  ]);
  const textOf = (of: store.ApplicationKey) => JSON.stringify(nameOf(reading, of, dimension));
  const byRow = Map.groupBy(steps, textOf);
  return sums.map((of) => {
    const bytes = new Map<number, number>();
    for (const step of byRow.get(textOf(of[0]!)) ?? []) {
      const { inBytes, outBytes } = ofSides({ ...step, packets: null }, reading.sides);
      const at = step.at.getTime();
      bytes.set(at, (bytes.get(at) ?? 0) + inBytes + outBytes);
    }
    return toRates(
      reading,
      observed,
      observed.timesMs.map((ms) => bytes.get(ms) ?? 0),
    );
  });
}

/** The steps of what these sums are of; those of names may be of others that have the same ones. */
async function listStepsOf(
  reading: Reading,
  dimension: RankedDimension,
  sums: readonly store.ApplicationSum[],
): Promise<store.ApplicationStep[]> {
  if (sums.every(({ steps }) => steps !== null)) return sums.flatMap(({ steps }) => steps!);
  const isByName = dimension === 'application' || dimension === 'service';
  const serverIds = sums.flatMap(({ serverId }) => serverId ?? []);
  return listSteps(reading, groupOf[dimension], {
    names: isByName ? [...new Set(sums.map(({ name }) => name!))] : undefined,
    serverIds: serverIds.length > 0 ? serverIds : undefined,
  });
}

async function readFlows(reading: Reading, limit: number): Promise<Flow[]> {
  const sums = await listSums(reading, 'flow', limit);
  return sums.map((sum) => ({
    server: reading.names.of('server', sum.serverId!),
    application: { value: sum.name!, label: sum.name! },
    bytes: sizeOf(amountOf(reading, [sum]), 'bytes')!,
  }));
}
