/** What one look reads of applications: its window, sums and steps, each read once, and how their groups are named. */
import type { Amount } from '#service-kit/explorer/index.ts';
import * as store from './application-store.ts';
import type { ExplorationAsk, ExploredCourse, RankedDimension, RankedValue, Ranking } from './exploration.ts';
import { serviceOf } from './explore.ts';
import type { Opened } from './opened.ts';
import { sumOf } from './rank-values.ts';
import type { ServerDimension } from './traffic-names.ts';
import type { RankOptions } from './usage-rank.ts';

/** How long an application is shown (NET-2.4.4). */
const shownMs = 86_400_000;
const hourMs = 3_600_000;

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

export const groupOf: Readonly<Record<RankedDimension, store.ApplicationGroup>> = {
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

/** One look's reading of applications. */
export interface Reading extends Opened {
  window: ApplicationWindow;
  stepSeconds: number;
  /** The filters name applications, so that these alone count. */
  isFiltered: boolean;
  /** Sums that were read: a chart and its table ask for the same. */
  known: Map<string, Promise<store.ApplicationSum[]>>;
  /** Those that a ranking was made of. */
  ranked: WeakMap<Ranking, readonly store.ApplicationSum[]>;
  /** Of everything that counts. */
  course: Promise<store.ApplicationStep[]> | null;
}

const queryOf = ({ window, ask, directions }: Reading) => ({ ...window, filters: ask.filters, directions });
export const inOf = ({ directions }: Reading, bytes: number) => (directions.in ? bytes : 0);
export const outOf = ({ directions }: Reading, bytes: number) => (directions.out ? bytes : 0);
/** Of these together; null where the time before is not shown any more. */
export function previousOf(reading: Reading, rows: readonly store.ApplicationSum[]): Amount | null {
  if (reading.window.before === null) return null;
  const [inBytes, outBytes] = [
    sumOf(rows, (row) => row.previousInbound),
    sumOf(rows, (row) => row.previousOutbound),
  ];
  return { inBytes: inOf(reading, inBytes), outBytes: outOf(reading, outBytes), packets: null };
}

export function listSums(
  reading: Reading,
  by: store.ApplicationGroup,
  limit: number,
  { order, isAscending = false }: Pick<RankOptions, 'order' | 'isAscending'> = {},
): Promise<store.ApplicationSum[]> {
  const known = store.applicationOrders.find((each) => each === order) ?? 'total';
  const { stepSeconds } = reading;
  const query = { ...queryOf(reading), by, order: known, isAscending, limit, stepSeconds };
  const key = JSON.stringify([by, known, isAscending, limit]);
  const found = reading.known.get(key) ?? store.listApplicationSums(reading.db, reading.scope, query);
  reading.known.set(key, found);
  return found;
}

export type Nameable = Pick<
  store.ApplicationSum,
  'serverId' | 'address' | 'name' | 'transport' | 'serverPort'
>;
export type Named = Pick<RankedValue, 'value' | 'label' | 'service' | 'serverId' | 'tenantId'>;

export function nameOf({ names }: Reading, row: Nameable, dimension: RankedDimension): Named {
  const none = { serverId: null, tenantId: null, service: null };
  switch (dimension) {
    case 'application':
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

export function listSteps(
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

/** The course of everything that counts; read once, where it is not read beside its sum. */
export function listCourse(reading: Reading): Promise<store.ApplicationStep[]> {
  reading.course ??= listSums(reading, 'all', 1).then(([row]) => row?.steps ?? listSteps(reading, 'all'));
  return reading.course;
}

/** Bytes of steps as rates over the minutes that were observed; null before applications are known. */
export function ratesOf(
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
