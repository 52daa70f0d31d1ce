/** Traffic in the console's lists: what a server or a customer does now, and did in the last 24 hours. */
import type { Actor } from '#operations/accounts/index.ts';
import { isStale, type LatestRow, type ProtectTraffic, type UsageTotal } from '#operations/protect/index.ts';
import { type Column, formatBitRate, formatBytes, link } from '#service-kit/pages/index.ts';
import { type DaySteps, dayOf, daySpark, readDaySteps } from '../parts/index.ts';
import { customerTrafficHref, serverTrafficHref } from './links.ts';

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
    return latest && !isStale(latest.minute.getTime(), nowMs) ? latest[key] : null;
  };
  return [
    { key: 'in', header: 'In', field: 'in_bps', ...figure(now('inboundBps'), formatBitRate) },
    { key: 'out', header: 'Out', field: 'out_bps', ...figure(now('outboundBps'), formatBitRate) },
    ...dayColumns(traffic, idOf, serverTrafficHref),
  ];
}

/** Bytes of 24 hours, the 95th percentile and the trend. */
export function customerTrafficColumns<Row>(traffic: ListTraffic, idOf: (row: Row) => number): Column<Row>[] {
  const bytes = (key: 'inboundBytes' | 'outboundBytes') => (row: Row) =>
    traffic.totals.get(idOf(row))?.[key] ?? null;
  return [
    { key: 'in', header: 'In, 24 h', field: 'in_24h_bytes', ...figure(bytes('inboundBytes'), formatBytes) },
    {
      key: 'out',
      header: 'Out, 24 h',
      field: 'out_24h_bytes',
      ...figure(bytes('outboundBytes'), formatBytes),
    },
    ...dayColumns(traffic, idOf, customerTrafficHref),
  ];
}

/** A figure with its unit on the page, and bare in files. */
function figure<Row>(value: (row: Row) => number | null, format: (figure: number) => string) {
  const cell = (row: Row) => {
    const known = value(row);
    return known === null ? null : format(known);
  };
  return { kind: 'figure' as const, value, cell };
}

/** The trend leads to the explorer, which says what it was of. */
function dayColumns<Row>(
  traffic: ListTraffic,
  idOf: (row: Row) => number,
  hrefOf: (id: number) => string,
): Column<Row>[] {
  return [
    {
      ...{ key: 'p95', header: 'Out, 95th percentile', field: 'out_p95_bps' },
      ...figure((row: Row) => traffic.totals.get(idOf(row))?.outboundP95 ?? null, formatBitRate),
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
