import { createHash } from 'node:crypto';
import { findImplausible } from '#contracts/admin-api/plausible.ts';
import type {
  ReceiptOutcome,
  TelemetryPoint,
  TelemetryReceipts,
  TelemetryRequest,
} from '#contracts/admin-api/schemas.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import type { StoredTarget } from '../allocations/index.ts';
import type { Parcel } from '../feed.ts';
import type { SetAside } from '../round.ts';
import { buildPoints, hasPoint, type PointFields } from './build-points.ts';
import {
  advanceCursor,
  type Cursor,
  createCursor,
  firstWholeMinute,
  historySeconds,
  planVisit,
  type Visit,
} from './plan-visit.ts';
import type { RangeContent, ReadRange, VisitRange } from './read-ahead.ts';

/** Where an allocation's minutes are read and sent. */
export interface VisitContext extends PointFields {
  read: ReadRange;
  siteId: number;
  /** All clusters of the site. */
  clusterIds: readonly number[];
  completeUntil: number;
  /** Minutes of an allocation that operations does not take as they were. */
  setAsideOf(target: StoredTarget): readonly SetAside[];
}

const assignedFromOf = (target: Pick<StoredTarget, 'assignedAt'>) =>
  firstWholeMinute(Date.parse(target.assignedAt));

/** Where a target stands; one that was never visited at its start. */
function cursorOf({ position, ...target }: StoredTarget, completeUntil: number): Cursor {
  if (!position) return createCursor(assignedFromOf(target), completeUntil);
  return { deliveredUntil: Number(position.deliveredUntil), sweptUntil: Number(position.sweptUntil) };
}

/** What the next visit of a target reads first; a catch-up over hours without data reads on. */
export function rangesOf(target: StoredTarget, completeUntil: number): VisitRange[] {
  const visit = planVisit(cursorOf(target, completeUntil), assignedFromOf(target), completeUntil);
  if (!visit) return [];
  const of = { item: target.key, address: target.address, assignedFrom: assignedFromOf(target) };
  return [
    { ...of, fromMinute: visit.recentFrom, toMinute: visit.recentTo },
    {
      ...of,
      ...{ fromMinute: visit.historyFrom, toMinute: visit.historyTo },
      ...(visit.isCatchingUp && { readsOnUntil: visit.recentFrom }),
    },
  ].filter((range) => range.fromMinute < range.toMinute);
}

/** What a visit reads where this range has nothing to send; null: nothing else. */
export function rangeAfter(range: VisitRange, content: RangeContent, withReason: boolean): VisitRange | null {
  const { toMinute, readsOnUntil } = range;
  if (readsOnUntil === undefined || toMinute >= readsOnUntil || hasPoints(content, withReason)) return null;
  return { ...range, fromMinute: toMinute, toMinute: Math.min(toMinute + historySeconds, readsOnUntil) };
}

const hasPoints = (content: RangeContent, withReason: boolean) =>
  content.minutes.some((minute) => hasPoint(minute, withReason));

type MinuteParcel = Parcel<TelemetryRequest, TelemetryReceipts>;

/** Bytes of points in one request; a request must fit receivers whose bodies end at 256 KiB. */
const pointsBytesMax = 192 * 1024;
/** Of one request, as the contract has it. */
const clusterIdsMax = 100;

/**
 * One visit: reads, makes one bounded request, and says where the cursor stands after its receipt (NET-4.3).
 *
 * `unmatched` and `source_conflict` acknowledge nothing, so they keep the cursor where it was, as a failure does.
 */
export async function buildParcel(context: VisitContext, target: StoredTarget): Promise<MinuteParcel> {
  const { key } = target;
  const cursor = cursorOf(target, context.completeUntil);
  const visit = planVisit(cursor, assignedFromOf(target), context.completeUntil);
  const done = (outcome: 'waiting' | 'empty', position: Cursor, setAside: SetAside[] = []) => ({
    request: null,
    visits: [{ key, outcome, position: { ...position }, setAside }],
    take: () => [],
  });
  // There is no complete minute yet.
  if (!visit) return done('waiting', cursor);

  const { points: found, historyDone } = await readPoints(context, target, visit);
  const advanced = advanceCursor(cursor, visit, historyDone);
  const { sent: points, setAside } = dividePoints(found, context.setAsideOf(target));
  // A verified empty scan is a result too.
  if (points.length === 0) return done('empty', advanced, setAside);
  return {
    request: requestOf(context, target, points),
    visits: [],
    take(answer) {
      const { receipt, setAside: named } = readAnswer(answer, target, points);
      const isAcknowledged = receipt === 'accepted' || receipt === 'unchanged';
      return [
        {
          key,
          outcome: receipt,
          position: { ...(isAcknowledged ? advanced : cursor) },
          setAside: [...setAside, ...named],
          counts: { points: points.length },
          acknowledged: isAcknowledged ? newestObservation(points) : null,
        },
      ];
    },
    takeRefusal(fields) {
      const refused = namedPoints(fields).flatMap((i) =>
        points[i] ? [setAsideOf(points[i], 'refused')] : [],
      );
      if (refused.length === 0) return [];
      // The next visit sends the others.
      return [{ key, outcome: 'refused', position: { ...cursor }, setAside: [...setAside, ...refused] }];
    },
  };
}

/** Start of the newest minute with values, seconds since 1970; null: there are only gaps. */
function newestObservation(points: readonly TelemetryPoint[]): number | null {
  const newest = points.findLast((point) => point.inbound_bps !== null);
  return newest ? Date.parse(newest.timestamp) / 1000 : null;
}

function requestOf(context: VisitContext, target: StoredTarget, series: TelemetryPoint[]): TelemetryRequest {
  return {
    contract_version: 1,
    source_site_id: context.siteId,
    cluster_ids: context.clusterIds.length <= clusterIdsMax ? [...context.clusterIds] : [target.clusterId],
    targets: [{ id: target.id, address: target.address, assigned_at: target.assignedAt, series }],
  };
}

/** The receipt of the one target that was sent, and the minutes that operations set aside. */
function readAnswer(
  { receipts, set_aside = [] }: TelemetryReceipts,
  target: StoredTarget,
  series: readonly TelemetryPoint[],
): { receipt: ReceiptOutcome; setAside: SetAside[] } {
  const [receipt] = receipts;
  // An answer with no receipt, with two or about another target proves nothing.
  if (receipts.length !== 1 || receipt?.id !== target.id) throw new OperationsError('malformed');
  const setAside = set_aside.flatMap(({ timestamp, reason }) => {
    const point = series.find((one) => one.timestamp === timestamp);
    return point ? [setAsideOf(point, reason)] : [];
  });
  return { receipt: receipt.receipt, setAside };
}

/** Where in the series the points lie that a refusal named. */
function namedPoints(fields: readonly string[]): number[] {
  const points = fields.flatMap((path) => {
    const match = /^targets\.0\.series\.(\d{1,2})(?:\.|$)/.exec(path);
    return match ? [Number(match[1])] : [];
  });
  return [...new Set(points)];
}

/**
 * The points of a visit in order; where they would grow too large, the older minutes end earlier.
 *
 * While catching up, stretches that hold nothing are passed over at once: a verified empty scan is a result.
 */
async function readPoints(
  context: VisitContext,
  target: StoredTarget,
  visit: Visit,
): Promise<{ points: TelemetryPoint[]; historyDone: number }> {
  const recent = await readRange(context, target, visit.recentFrom, visit.recentTo);
  let { historyFrom: from, historyTo: to } = visit;
  let history = await readRange(context, target, from, to);
  while (visit.isCatchingUp && history.length === 0 && to < visit.recentFrom) {
    from = to;
    to = Math.min(from + historySeconds, visit.recentFrom);
    history = await readRange(context, target, from, to);
  }
  let bytes = recent.reduce((sum, point) => sum + JSON.stringify(point).length, 0);
  const kept: TelemetryPoint[] = [];
  for (const point of history) {
    bytes += JSON.stringify(point).length;
    if (bytes > pointsBytesMax) {
      return { points: [...kept, ...recent], historyDone: Date.parse(point.timestamp) / 1000 };
    }
    kept.push(point);
  }
  return { points: [...kept, ...recent], historyDone: to };
}

async function readRange(
  context: VisitContext,
  target: StoredTarget,
  from: number,
  to: number,
): Promise<TelemetryPoint[]> {
  if (from >= to) return [];
  const content = await context.read({
    ...{ item: target.key, address: target.address, assignedFrom: assignedFromOf(target) },
    ...{ fromMinute: from, toMinute: to },
  });
  if (!hasPoints(content, context.withReason)) return [];
  return buildPoints(content, context);
}

/** The points of a visit that are sent, and those that are not. */
interface DividedPoints {
  sent: TelemetryPoint[];
  setAside: SetAside[];
}

/**
 * Takes out what no link carries, and what operations has refused as it is. One such minute must not keep the others of its
 * allocation from being delivered.
 */
function dividePoints(points: readonly TelemetryPoint[], known: readonly SetAside[]): DividedPoints {
  const refused = new Map(known.map((one) => [one.part, one]));
  const divided: DividedPoints = { sent: [], setAside: [] };
  for (const point of points) {
    const implausible = findImplausible(point);
    const held = refused.get(minuteOf(point));
    if (implausible) divided.setAside.push(setAsideOf(point, implausible));
    else if (held && held.fingerprint === fingerprintOf(point)) divided.setAside.push(held);
    else divided.sent.push(point);
  }
  return divided;
}

/** A point as one that is not sent again as it is. */
function setAsideOf(point: TelemetryPoint, reason: string): SetAside {
  return { part: minuteOf(point), reason, fingerprint: fingerprintOf(point) };
}

function minuteOf(point: TelemetryPoint): number {
  return Date.parse(point.timestamp) / 1000;
}

function fingerprintOf(point: TelemetryPoint): string {
  return createHash('sha256').update(JSON.stringify(point)).digest('base64url').slice(0, 22);
}
