/** The Live range of the Traffic tab: its page, the data of its chart, and the buckets for programs. */
import { Type } from 'typebox';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Features } from '#operations/features.ts';
import type { IncidentRow, LiveRow, LiveStatus, MinuteRow } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  type ChartData,
  type ChartFlag,
  type Column,
  chart,
  chartJson,
  code,
  codeColumn,
  formatBitRate,
  formatCount,
  formatPacketRate,
  formatPercent,
  type Html,
  html,
  link,
  pageHeader,
  rangePicker,
  refreshing,
  section,
  stat,
  stats,
  type Tone,
  table,
  withQuery,
} from '#service-kit/pages/index.ts';
import { byLiveBuckets, gapsOf } from '../../parts/index.ts';
import { attackAreas, attacksNow } from '../protect/attacks.ts';
import { deliverySection, liveCard } from '../protect/delivery-cards.ts';
import { findProtectedOf, type ProtectedServer } from '../protect/guard-protect.ts';
import { serverFrame } from '../servers/server-frame.ts';
import { readOffTimes } from './off-times.ts';
import { readServerFlags } from './server-flags.ts';
import { trafficTabs } from './traffic-url.ts';

const schema = {
  params: Type.Object({ id: Type.String() }),
  querystring: Type.Object({ address: Type.Optional(Type.String({ maxLength: 64 })) }),
};
/** Buckets that the chart shows. */
const shownMs = 600_000;
/** Attacks that a chart marks. */
const attacksMax = 20;

export function registerLive(app: App, deps: Features): void {
  // Programs know them under `/protect/`, where they were first.
  for (const path of ['/servers/:id/traffic', '/servers/:id/protect']) {
    app.get(`${path}/live.json`, { schema }, async (request, reply) => {
      const found = await findProtectedOf(deps, request);
      const { rows } = await readLive(deps, found, request.query.address);
      return reply.send({ buckets: rows.map(toWire) });
    });

    app.get(`${path}/live-chart.json`, { schema }, async (request, reply) => {
      const found = await findProtectedOf(deps, request);
      const view = await readLive(deps, found, request.query.address);
      return reply.send(chartJson('bit/s', liveChartData(view)));
    });
  }
}

/** The page of the Live range. */
export async function readLivePage(deps: Features, found: ProtectedServer, address: string | undefined) {
  return livePage(found, await readLive(deps, found, address));
}

export async function readLive(
  deps: Features,
  { visitor, server, subject }: ProtectedServer,
  wanted: string | undefined,
): Promise<LiveView> {
  const nowMs = deps.clock.nowMs();
  const toMs = Math.floor(nowMs / bucketMs) * bucketMs;
  const fromMs = toMs - shownMs;
  const address = wanted ? (canonicalAddress(wanted) ?? wanted) : null;
  const of = { ...subject, address };
  const [rows, status, attacks, { flags }, off] = await Promise.all([
    deps.protectLive.read(visitor.actor, of, fromMs),
    deps.protectLive.readStatus(visitor.actor, of),
    deps.protectIncidents.list(visitor.actor, subject, { severity: 'attack', limit: attacksMax }),
    // Up to now: the bucket that goes on has no bar yet.
    readServerFlags(deps, { visitor, server, range: { fromMs, toMs: nowMs }, address }),
    readOffTimes(deps, { visitor, server }, nowMs),
  ]);
  const minutes =
    rows.length > 0
      ? []
      : await deps.protectTraffic.readMinutes(visitor.actor, of, { fromMs: minuteOf(fromMs), toMs });
  const createdMs = server.createdAt.getTime();
  return { rows, minutes, status, attacks, flags, createdMs, off, address, fromMs, toMs, nowMs };
}

function toWire(row: LiveRow) {
  return {
    timestamp: row.startedAt.toISOString(),
    address: row.address,
    inbound_bps: row.inboundBps,
    outbound_bps: row.outboundBps,
    pps: row.pps,
    coverage: row.coverage,
    observed_seconds: row.observedSeconds,
  };
}

const bucketMs = 10_000;
const minuteMs = 60_000;
const minuteOf = (ms: number) => Math.floor(ms / minuteMs) * minuteMs;
/** A bucket arrives within 15 seconds of its end; later than this something is wrong. */
export const liveStaleMs = 40_000;
/** Rows of the table. */
const rowsShown = 30;

export interface LiveView {
  /** In time order. */
  rows: readonly LiveRow[];
  /** Minutes of the same time where there is no bucket at all: not every sensor sends buckets. */
  minutes: readonly MinuteRow[];
  status: LiveStatus;
  /** The newest attacks on the server. */
  attacks: readonly IncidentRow[];
  /** What happened to the server. */
  flags: readonly ChartFlag[];
  /** When the server was created. */
  createdMs: number;
  /** Times at which it was switched off. */
  off: readonly { fromMs: number; toMs: number }[];
  /** Only this address; null for all. */
  address: string | null;
  fromMs: number;
  toMs: number;
  nowMs: number;
}

/**
 * The Live range: ten-second bars of the last ten minutes. A bucket without a bar was not observed; it is unknown, not zero.
 */
function livePage(found: ProtectedServer, view: LiveView): Html {
  const { visitor, server } = found;
  const path = `/client/servers/${server.id}/traffic`;
  const query = { address: view.address ?? undefined };
  const url = withQuery(path, { range: 'live', ...query });
  const header = [
    refreshing({ id: 'live-state', url, everySeconds: 5 }, [
      pageHeader({ title: server.name, state: stateOf(view) }),
    ]),
    attacksNow(server, view.attacks, view.nowMs),
  ];
  const body = [
    trafficTabs(server.id, 'now', withQuery(path, query)),
    html`<div class="toolbar">${rangePicker({ url, range: 'live' })}${addressChoice(found, view, url)}</div>`,
    refreshing({ id: 'live-tables', url, everySeconds: 5 }, [
      chart({
        id: 'live-traffic',
        title: 'Live traffic',
        unit: 'bit/s',
        data: liveChartData(view),
        dataUrl: withQuery(`${path}/live-chart.json`, query),
        refreshSeconds: 3,
        canPause: true,
        source: liveSource(view),
        emptyText: 'No live traffic in the last ten minutes.',
      }),
      newestStats(view),
      bucketsSection(view, path),
    ]),
    refreshing({ id: 'live-delivery', url, everySeconds: 15 }, [
      deliverySection([liveCard(view.status, view.nowMs)], view.nowMs),
    ]),
  ];
  return serverFrame({ visitor, server, tab: 'traffic' }, header, body);
}

type Rates = Pick<LiveRow, 'inboundBps' | 'outboundBps'> & { reason?: MinuteRow['reason'] };

/** One bar for each bucket, or else for each minute, over all addresses that were observed in it. */
export function liveChartData(view: LiveView): ChartData {
  const { rows, minutes, attacks, flags, toMs, createdMs, off, nowMs } = view;
  const ofMinutes = minutes.length > 0;
  const stepMs = ofMinutes ? minuteMs : bucketMs;
  const fromMs = ofMinutes ? minuteOf(view.fromMs) : view.fromMs;
  const bars: [number, Rates[]][] = ofMinutes
    ? [...Map.groupBy(minutes, ({ minute }) => minute.getTime())]
    : [...Map.groupBy(rows, ({ startedAt }) => startedAt.getTime())];
  const steps = bars.map(([ms, of]) => ({
    at: new Date(ms),
    minutes: of.some(({ inboundBps, outboundBps }) => inboundBps !== null || outboundBps !== null) ? 1 : 0,
    reason: of.find(({ reason }) => reason)?.reason ?? null,
  }));
  const range = { fromMs, toMs, stepSeconds: stepMs / 1000 };
  const pace = ofMinutes ? undefined : byLiveBuckets;
  return {
    timesMs: bars.map(([ms]) => ms),
    stepMs,
    shape: 'bars',
    range: { fromMs, toMs },
    series: [
      { label: 'In', role: 'in', values: bars.map(([, of]) => sumOf(of, (row) => row.inboundBps)) },
      { label: 'Out', role: 'out', values: bars.map(([, of]) => sumOf(of, (row) => row.outboundBps)) },
    ],
    areas: attackAreas(attacks).filter((area) => (area.toMs ?? toMs) > fromMs),
    reasons: gapsOf({ steps, range, createdMs, off, nowMs, ...(pace && { pace }) }),
    flags,
  };
}

/** What the chart's values are. */
export const liveSource = ({ minutes }: LiveView): string =>
  minutes.length > 0
    ? 'means of a minute, observed at the hypervisor, whose sensor sends no buckets of ten seconds'
    : 'means of ten seconds, observed at the hypervisor';

/** Null when nothing of it is known. */
export function sumOf<Row>(rows: readonly Row[], pick: (row: Row) => number | null): number | null {
  const known = rows.map(pick).filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
}

/** The newest bucket of all addresses. */
export function newestBucket({ rows }: LiveView): { endMs: number; rows: LiveRow[] } | null {
  const startMs = rows.at(-1)?.startedAt.getTime();
  if (startMs === undefined) return null;
  return { endMs: startMs + bucketMs, rows: rows.filter((row) => row.startedAt.getTime() === startMs) };
}

function stateOf(view: LiveView): { tone: Tone; text: Html | string } {
  const newest = newestBucket(view);
  if (!newest) {
    return {
      tone: 'neutral',
      text: 'No live traffic in the last ten minutes. A server that sends and receives nothing has none.',
    };
  }
  const { endMs, rows } = newest;
  if (view.nowMs - endMs > liveStaleMs) {
    return {
      tone: 'warn',
      text: html`No live traffic since ${timeOf(endMs)} UTC, ${age(endMs, view.nowMs)}. What came after is unknown, not zero.`,
    };
  }
  const rate = (pick: (row: LiveRow) => number | null) => formatBitRate(sumOf(rows, pick));
  return {
    tone: 'good',
    text: html`Live: ${rate((row) => row.inboundBps)} in, ${rate((row) => row.outboundBps)} out, ${age(endMs, view.nowMs)}.`,
  };
}

const timeOf = (ms: number) => new Date(ms).toISOString().slice(11, 19);

function newestStats(view: LiveView): Html {
  const newest = newestBucket(view);
  const source = newest ? html`over 10 s, ${age(newest.endMs, view.nowMs)}` : undefined;
  const figure = (label: string, pick: (row: LiveRow) => number | null, format: (value: number) => string) =>
    stat({ label, value: known(sumOf(newest?.rows ?? [], pick), format) ?? undefined, source });
  return stats(
    figure('In', (row) => row.inboundBps, formatBitRate),
    figure('Out', (row) => row.outboundBps, formatBitRate),
    figure('Packets', (row) => row.pps, formatPacketRate),
  );
}

function bucketsSection({ rows, address }: LiveView, path: string): Html {
  return section(
    {
      title: 'Buckets',
      id: 'buckets',
      description: `Means of ten seconds of UTC, of each address. The table shows the newest ${rowsShown}; the file contains the last ten minutes.`,
    },
    table<LiveRow>({
      caption: 'Ten-second buckets',
      card: { line: ['in', 'out'] },
      columns: [
        { key: 'time', header: 'Start', unit: 'UTC', cell: (row) => timeOf(row.startedAt.getTime()) },
        codeColumn('address', 'Address', (row) => code(row.address)),
        figure('in', 'In', (row) => known(row.inboundBps, formatBitRate)),
        figure('out', 'Out', (row) => known(row.outboundBps, formatBitRate)),
        figure('packets', 'Packets', (row) => known(row.pps, formatPacketRate)),
        {
          ...figure('observed', 'Observed', (row) => formatCount(Math.round(row.observedSeconds * 10) / 10)),
          unit: 's',
        },
        figure('coverage', 'Coverage', (row) => known(row.coverage, formatPercent)),
      ],
      rows: rows.toReversed().slice(0, rowsShown),
      jsonHref: withQuery(`${path}/live.json`, { address: address ?? undefined }),
      empty: {
        title: 'No buckets in the last ten minutes',
        text: 'A bucket appears here a few seconds after its ten seconds, when this server sends or receives.',
      },
    }),
  );
}

const figure = (key: string, header: string, cell: (row: LiveRow) => string | null): Column<LiveRow> => ({
  ...{ key, header, kind: 'figure', cell },
});

const known = (value: number | null, format: (value: number) => string): string | null =>
  value === null ? null : format(value);

/** Which address is shown, where the server has several. */
function addressChoice({ server }: ProtectedServer, { rows, address }: LiveView, url: string) {
  const addresses = new Set([
    ...server.addresses.map((each) => each.address),
    ...rows.map((row) => row.address),
    ...(address === null ? [] : [address]),
  ]);
  if (addresses.size < 2) return '';
  const choice = (value: string | null, label: string) =>
    link(withQuery(url, { address: value ?? undefined }), label, {
      kind: 'quiet',
      current: value === address,
    });
  return html`<nav class="segments" aria-label="Address">${choice(null, 'All addresses')}${[...addresses].map((each) => choice(each, each))}</nav>`;
}
