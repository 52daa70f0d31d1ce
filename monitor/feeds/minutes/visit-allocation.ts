import type { ReceiptOutcome, TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { type OperationsClient, OperationsError } from '#monitor/operations-client/index.ts';
import type { SetAside, StoredTarget } from '../store.ts';
import { buildPoints } from './build-points.ts';
import { dividePoints, setAsideOf } from './divide-points.ts';
import {
  advanceCursor,
  type Cursor,
  createCursor,
  firstWholeMinute,
  historySeconds,
  planVisit,
  type Visit,
} from './plan-visit.ts';
import type { ReadRange, VisitRange } from './read-ahead.ts';

/** Where an allocation's minutes are read and sent. */
export interface VisitContext {
  read: ReadRange;
  client: Pick<OperationsClient, 'postTelemetry'>;
  siteId: number;
  /** All clusters of the site. */
  clusterIds: readonly number[];
  completeUntil: number;
  /** Minutes of an allocation that operations does not take as they were. */
  setAsideOf(target: StoredTarget): readonly SetAside[];
  /** The receiver takes transport and port. */
  withIdentity: boolean;
}

export interface VisitResult {
  /**
   * `waiting`: no complete minute yet; `empty`: nothing to send, which is a result too; `refused`: operations named minutes
   * that it does not take, and the next visit sends the others.
   */
  outcome: ReceiptOutcome | 'empty' | 'waiting' | 'refused';
  cursor: Cursor;
  points: number;
  /** Minutes of this visit that are not delivered. */
  setAside: SetAside[];
  /** Start of the newest minute that was acknowledged. */
  latestMinute: number | null;
}

const assignedFromOf = (target: StoredTarget) => firstWholeMinute(Date.parse(target.assignedAt));

/** Where a target stands; one that was never visited at its start. */
export function cursorOf(target: StoredTarget, completeUntil: number): Cursor {
  return target.cursor ?? createCursor(assignedFromOf(target), completeUntil);
}

/** What the next visit of a target reads first; a catch-up over hours without data reads on. */
export function rangesOf(target: StoredTarget, completeUntil: number): VisitRange[] {
  const visit = planVisit(cursorOf(target, completeUntil), assignedFromOf(target), completeUntil);
  if (!visit) return [];
  const { address } = target;
  return [
    { address, fromMinute: visit.recentFrom, toMinute: visit.recentTo },
    { address, fromMinute: visit.historyFrom, toMinute: visit.historyTo },
  ].filter((range) => range.fromMinute < range.toMinute);
}

/** Bytes of points in one request; a request must fit receivers whose bodies end at 256 KiB. */
const pointsBytesMax = 192 * 1024;
/** Of one request, as the contract has it. */
const clusterIdsMax = 100;

/**
 * One visit: reads, sends one bounded request, and says where the cursor stands afterwards (NET-4.3).
 *
 * Throws `OperationsError` when the request failed; then the cursor stays where it was. `unmatched` and
 * `source_conflict` acknowledge nothing, so they keep it as well.
 */
export async function visitAllocation(context: VisitContext, target: StoredTarget): Promise<VisitResult> {
  const cursor = cursorOf(target, context.completeUntil);
  const visit = planVisit(cursor, assignedFromOf(target), context.completeUntil);
  const nothing = { points: 0, latestMinute: null, setAside: [] };
  if (!visit) return { ...nothing, outcome: 'waiting', cursor };

  const { points: found, historyDone } = await readPoints(context, target.address, visit);
  const advanced = advanceCursor(cursor, visit, historyDone);
  const { sent: points, setAside } = dividePoints(found, context.setAsideOf(target));
  if (points.length === 0) return { ...nothing, outcome: 'empty', cursor: advanced, setAside };
  const answer = await send(context, target, points);
  if ('refused' in answer)
    return { ...nothing, outcome: 'refused', cursor, setAside: [...setAside, ...answer.refused] };
  const { outcome } = answer;
  const isAcknowledged = outcome === 'accepted' || outcome === 'unchanged';
  return {
    outcome,
    cursor: isAcknowledged ? advanced : cursor,
    points: points.length,
    setAside: [...setAside, ...answer.setAside],
    latestMinute: isAcknowledged ? Date.parse(points.at(-1)!.timestamp) / 1000 : null,
  };
}

/**
 * The points of a visit in order; where they would grow too large, the older minutes end earlier.
 *
 * While catching up, stretches that hold nothing are passed over at once: a verified empty scan is a result.
 */
async function readPoints(
  context: VisitContext,
  address: string,
  visit: Visit,
): Promise<{ points: TelemetryPoint[]; historyDone: number }> {
  const recent = await readRange(context, address, visit.recentFrom, visit.recentTo);
  let { historyFrom: from, historyTo: to } = visit;
  let history = await readRange(context, address, from, to);
  while (visit.isCatchingUp && history.length === 0 && to < visit.recentFrom) {
    from = to;
    to = Math.min(from + historySeconds, visit.recentFrom);
    history = await readRange(context, address, from, to);
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
  address: string,
  from: number,
  to: number,
): Promise<TelemetryPoint[]> {
  if (from >= to) return [];
  const { minutes, applications } = await context.read({ address, fromMinute: from, toMinute: to });
  if (minutes.every((minute) => minute.isGap)) return [];
  return buildPoints(minutes, applications, context.withIdentity);
}

/** The receipt, or the points that a refusal named. */
type Answer = { outcome: ReceiptOutcome; setAside: SetAside[] } | { refused: SetAside[] };

async function send(context: VisitContext, target: StoredTarget, series: TelemetryPoint[]): Promise<Answer> {
  const request = {
    contract_version: 1 as const,
    source_site_id: context.siteId,
    cluster_ids: context.clusterIds.length <= clusterIdsMax ? [...context.clusterIds] : [target.clusterId],
    targets: [{ id: target.id, address: target.address, assigned_at: target.assignedAt, series }],
  };
  try {
    const { receipts, set_aside = [] } = await context.client.postTelemetry(request);
    const receipt = receipts[0];
    // One target was sent: an answer with none, with two or about another one proves nothing.
    if (receipts.length !== 1 || receipt?.id !== target.id) throw new OperationsError('malformed');
    const setAside = set_aside.flatMap(({ timestamp, reason }) => {
      const point = series.find((one) => one.timestamp === timestamp);
      return point ? [setAsideOf(point, reason)] : [];
    });
    return { outcome: receipt.receipt, setAside };
  } catch (error) {
    if (!(error instanceof OperationsError)) throw error;
    const refused = error.refusedPoints.flatMap((i) => (series[i] ? [setAsideOf(series[i], 'refused')] : []));
    if (refused.length === 0) throw error;
    return { refused };
  }
}
