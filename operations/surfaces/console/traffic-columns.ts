/** Traffic in the console's lists: what a server or a customer does now, and did in the last 24 hours. */
import type { Actor } from '#operations/accounts/index.ts';
import {
  isStale,
  type LatestRow,
  type ProtectTraffic,
  type UsageStep,
  type UsageTotal,
} from '#operations/protect/index.ts';
import { type Column, formatBitRate, formatBytes, link, spark } from '#service-kit/pages/index.ts';
import { customerTrafficHref, serverTrafficHref } from './traffic/traffic-link.ts';

/** By the id of the row. */
export interface ListTraffic {
  totals: ReadonlyMap<number, UsageTotal>;
  steps: ReadonlyMap<number, readonly UsageStep[]>;
  /** Starts of the steps. */
  times: readonly number[];
  /** Of servers alone. */
  latest: ReadonlyMap<number, LatestRow>;
}

const hourMs = 3_600_000;
const stepsShown = 24;

/** The last 24 hours of these servers, or of these customers together. */
export async function readListTraffic(
  traffic: Pick<ProtectTraffic, 'readTotals' | 'readServerSteps' | 'readLatest'>,
  actor: Actor,
  rows: { serverIds: readonly number[] } | { tenantIds: readonly number[] },
  nowMs: number,
): Promise<ListTraffic> {
  const toMs = Math.ceil(nowMs / hourMs) * hourMs;
  const fromMs = toMs - stepsShown * hourMs;
  const isOfServers = 'serverIds' in rows;
  const of = isOfServers ? 'server' : 'tenant';
  const subject = isOfServers ? rows : { ...rows, serverIds: null };
  const [totals, steps, latest] = await Promise.all([
    traffic.readTotals(actor, subject, { fromMs, toMs }, of),
    traffic.readServerSteps(actor, subject, { fromMs, toMs, stepSeconds: hourMs / 1000 }, of),
    traffic.readLatest(actor, isOfServers ? rows.serverIds : []),
  ]);
  return {
    totals,
    steps,
    latest,
    times: Array.from({ length: stepsShown }, (_, index) => fromMs + index * hourMs),
  };
}

/** In and out now, the 95th percentile of 24 hours, and their course. */
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

/** Bytes of 24 hours, the 95th percentile and the course. */
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

/** The course leads to the explorer, which says what it was of. */
function dayColumns<Row>(
  { totals, steps, times }: ListTraffic,
  idOf: (row: Row) => number,
  hrefOf: (id: number) => string,
): Column<Row>[] {
  return [
    {
      key: 'p95',
      header: 'Out, 95th percentile',
      kind: 'figure',
      cell: (row) => {
        const rate = totals.get(idOf(row))?.outboundP95 ?? null;
        return rate === null ? null : formatBitRate(rate);
      },
    },
    {
      key: 'course',
      header: '24 hours',
      kind: 'picture',
      cell: (row) => {
        const byTime = new Map(steps.get(idOf(row))?.map((step) => [step.at.getTime(), step]));
        const values = (key: 'inboundBps' | 'outboundBps') =>
          times.map((ms) => byTime.get(ms)?.[key] ?? null);
        const picture = spark(
          { in: values('inboundBps'), out: values('outboundBps') },
          'In and out over the last 24 hours',
        );
        return link(hrefOf(idOf(row)), picture, { kind: 'quiet', label: 'Explore the traffic' });
      },
    },
  ];
}
