/** Traffic in the console's lists: what a server or a customer does now, and did in the last 24 hours. */
import type { Actor } from '#operations/accounts/index.ts';
import { isStale, type LatestRow, type ProtectTraffic, type UsageTotal } from '#operations/protect/index.ts';
import { type Column, formatBitRate, formatBytes, link } from '#service-kit/pages/index.ts';
import { type DaySteps, dayOf, daySpark, readDaySteps } from '../parts/index.ts';
import { customerTrafficHref, serverTrafficHref } from './traffic/traffic-link.ts';

/** By the id of the row. */
export interface ListTraffic extends DaySteps {
  totals: ReadonlyMap<number, UsageTotal>;
  /** Of servers alone. */
  latest: ReadonlyMap<number, LatestRow>;
}

/** The last 24 hours of these servers, or of these customers together. */
export async function readListTraffic(
  traffic: Pick<ProtectTraffic, 'readTotals' | 'readServerSteps' | 'readLatest'>,
  actor: Actor,
  rows: { serverIds: readonly number[] } | { tenantIds: readonly number[] },
  nowMs: number,
): Promise<ListTraffic> {
  const isOfServers = 'serverIds' in rows;
  const of = isOfServers ? 'server' : 'tenant';
  const subject = isOfServers ? rows : { ...rows, serverIds: null };
  const [totals, day, latest] = await Promise.all([
    traffic.readTotals(actor, subject, dayOf(nowMs), of),
    readDaySteps(traffic, actor, subject, of, nowMs),
    traffic.readLatest(actor, isOfServers ? rows.serverIds : []),
  ]);
  return { totals, latest, ...day };
}

/** In and out now, the 95th percentile of 24 hours, and their trend. */
export function serverTrafficColumns<Row>(
  traffic: ListTraffic,
  idOf: (row: Row) => number,
  nowMs: number,
): Column<Row>[] {
  const now = (key: 'inboundBps' | 'outboundBps') => (row: Row) => {
    const latest = traffic.latest.get(idOf(row));
    const rate = latest && !isStale(latest.minute.getTime(), nowMs) ? latest[key] : null;
    return rate === null ? null : formatBitRate(rate);
  };
  return [
    { key: 'in', header: 'In', kind: 'figure', cell: now('inboundBps') },
    { key: 'out', header: 'Out', kind: 'figure', cell: now('outboundBps') },
    ...dayColumns(traffic, idOf, serverTrafficHref),
  ];
}

/** Bytes of 24 hours, the 95th percentile and the trend. */
export function customerTrafficColumns<Row>(traffic: ListTraffic, idOf: (row: Row) => number): Column<Row>[] {
  const bytes = (key: 'inboundBytes' | 'outboundBytes') => (row: Row) => {
    const total = traffic.totals.get(idOf(row));
    return total === undefined ? null : formatBytes(total[key]);
  };
  return [
    { key: 'in', header: 'In, 24 h', kind: 'figure', cell: bytes('inboundBytes') },
    { key: 'out', header: 'Out, 24 h', kind: 'figure', cell: bytes('outboundBytes') },
    ...dayColumns(traffic, idOf, customerTrafficHref),
  ];
}

/** The trend leads to the explorer, which says what it was of. */
function dayColumns<Row>(
  traffic: ListTraffic,
  idOf: (row: Row) => number,
  hrefOf: (id: number) => string,
): Column<Row>[] {
  return [
    {
      key: 'p95',
      header: 'Out, 95th percentile',
      kind: 'figure',
      cell: (row) => {
        const rate = traffic.totals.get(idOf(row))?.outboundP95 ?? null;
        return rate === null ? null : formatBitRate(rate);
      },
    },
    {
      key: 'trend',
      header: '24 hours',
      kind: 'picture',
      cell: (row) => {
        const picture = daySpark(traffic, idOf(row));
        return picture && link(hrefOf(idOf(row)), picture, { kind: 'quiet', label: 'Explore the traffic' });
      },
    },
  ];
}
