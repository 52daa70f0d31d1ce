/**
 * The Traffic page of a server. It says first how fresh it is, then draws, then lists: applications and ports of the range,
 * minutes with their exact bytes, usage by day. What was not observed is a gap with its reason and reads "unknown", never 0.
 */
import {
  bytesOf,
  type IncidentRow,
  isStale,
  type LiveStatus,
  type MinuteRow,
  type MinuteStatus,
  namesApplications,
  type Rank,
  type Traffic,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/servers/index.ts';
import { printFilters, sidesOf } from '#service-kit/explorer/index.ts';
import {
  age,
  banner,
  type ChartData,
  type Content,
  chart,
  formatBitRate,
  formatBytes,
  formatCount,
  formatPercent,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  refreshing,
  section,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import type { Gap } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { attackState, attacksNow, isHeadline } from '../protect/attacks.ts';
import { deliverySection, liveCard, minutesCard } from '../protect/delivery-cards.ts';
import { serverFrame } from '../servers/server-frame.ts';
import { type BandwidthOptions, bandwidthSections } from './bandwidth.section.ts';
import { filterBar } from './filter-bar.ts';
import { minutesSection } from './minutes.section.ts';
import { type ApplicationRank, applicationsTable, bytesText, portsSection } from './rank-tables.ts';
import { serverBox, type TrafficAsk, urlOf } from './traffic-url.ts';

export interface TrafficPageOptions {
  visitor: Visitor;
  server: Server;
  ask: TrafficAsk;
  traffic: Traffic;
  /** Bytes and 95th percentile of the range; null when nothing was observed. */
  total: { inboundP95: number | null; outboundP95: number | null } | null;
  chartData: ChartData;
  /** Which of what happened the chart leaves out; null: nothing. */
  note: string | null;
  applications: readonly ApplicationRank[];
  ports: readonly Rank[];
  /** When applications begin, where that is later than the range. */
  applicationsFromMs: number | null;
  /** The newest of the range, newest first. */
  minutes: readonly MinuteRow[];
  minuteGaps: readonly Gap[];
  openAttacks: readonly IncidentRow[];
  delivery: { live: LiveStatus; minutes: MinuteStatus };
  usage: Omit<BandwidthOptions, 'url' | 'nowMs'>;
}

export const trafficPath = (serverId: number): string => `/client/servers/${serverId}/traffic`;

export function trafficPage(options: TrafficPageOptions): Html {
  const { visitor, server, ask, openAttacks, traffic } = options;
  const path = trafficPath(server.id);
  const url = urlOf(path, ask);
  const context = { url, filters: ask.filters, nowMs: traffic.nowMs };
  const header = [
    refreshing({ id: 'traffic-state', url, everySeconds: 15 }, [
      pageHeader({ title: server.name, state: stateOf(options) }),
    ]),
    attacksNow(server, openAttacks, traffic.nowMs),
  ];
  const body = [
    html`<div class="toolbar">${rangePicker({ url, range: ask.range, nowMs: traffic.nowMs, hasLive: true })}${addressChoice(options, url)}${exploreLink(options)}</div>`,
    filterBar({
      url,
      filters: ask.filters,
      faults: ask.faults,
      by: ask.by,
      choices: serverBox.groups,
      example: 'app:example.com port:443',
    }),
    refreshing({ id: 'traffic-tables', url, everySeconds: 15 }, [
      trafficChart(options, url),
      options.note !== null && html`<p class="hint">${options.note}</p>`,
      rangeStats(options),
      applicationsSection(options, url),
      portsSection(options.ports, context),
      minutesSection({
        minutes: options.minutes,
        gaps: options.minuteGaps,
        range: ask.range,
        csvHref: fileOf(url, path, 'minutes.csv'),
        jsonHref: fileOf(url, path, 'minutes.json'),
      }),
    ]),
    bandwidthSections({ ...options.usage, url, nowMs: traffic.nowMs }),
    refreshing(
      { id: 'traffic-delivery', url, everySeconds: 15 },
      deliverySection([
        minutesCard(options.delivery.minutes, traffic.nowMs),
        liveCard(options.delivery.live, traffic.nowMs),
      ]),
    ),
  ];
  return serverFrame({ visitor, server, tab: 'traffic' }, header, body);
}

const fileOf = (url: string, path: string, file: string) => url.replace(path, `${path}/${file}`);

function trafficChart({ server, ask, chartData }: TrafficPageOptions, url: string): Html {
  const path = trafficPath(server.id);
  return chart({
    id: 'traffic',
    title: 'Traffic',
    unit: 'bit/s',
    data: chartData,
    dataUrl: withQuery(fileOf(url, path, 'chart.json'), {}),
    refreshSeconds: 15,
    canZoom: true,
    // No age here: the data is fetched again and again, this sentence is not.
    source: `${stepOf(ask.range)}, observed at the hypervisor`,
    emptyText: 'No traffic was observed in this range.',
    csvHref: fileOf(url, path, 'minutes.csv'),
  });
}

/** The explorer with this server and range: previous period, flows, saved views and tables by any dimension. */
function exploreLink({ server, ask }: TrafficPageOptions): Content {
  const own = { dimension: 'server' as const, is: true, values: [String(server.id)] };
  const { range, from, to } = Object.fromEntries(
    new URLSearchParams(urlOf('', { ...ask, filters: [] }).slice(1)),
  );
  const q = printFilters([own, ...ask.filters]);
  return link(withQuery('/client/traffic/', { q, range, from, to }), 'Explore', { kind: 'button' });
}

/** The page of a server whose protection views are off: usage alone (NET-1.6). */
export function usageOnlyPage(
  options: Pick<TrafficPageOptions, 'visitor' | 'server' | 'usage'> & { nowMs: number; url: string },
): Html {
  const { visitor, server, usage, nowMs, url } = options;
  const header = pageHeader({
    title: server.name,
    state: { tone: 'neutral', text: 'Protection views are off.' },
  });
  return serverFrame({ visitor, server, tab: 'traffic' }, header, [
    banner({
      tone: 'info',
      title: 'Minutes and applications of this server are not shown',
      text: 'Observation continues. Turn the protection views on to see everything observed since.',
      actions: link(`/client/servers/${server.id}/protect`, 'Protection settings', { kind: 'button' }),
    }),
    bandwidthSections({ ...usage, url, nowMs }),
  ]);
}

function stateOf({ traffic, openAttacks }: TrafficPageOptions): { tone: Tone; text: Content } {
  const { latestMinuteMs, nowMs } = traffic;
  const now = openAttacks.filter((each) => isHeadline(each, nowMs));
  if (now.length > 0) return attackState(now);
  if (latestMinuteMs === null) {
    return {
      tone: 'neutral',
      text: 'Nothing observed yet. Live traffic appears within 30 seconds of the first packets, minutes after about two minutes.',
    };
  }
  const endMs = latestMinuteMs + 60_000;
  const minute = formatTime(latestMinuteMs).slice(11);
  if (isStale(latestMinuteMs, nowMs)) {
    return {
      tone: 'warn',
      text: html`No new minutes since ${minute}, ${age(endMs, nowMs)}. Traffic since then is unknown, not zero.`,
    };
  }
  const latest = traffic.steps.findLast((step) => step.minutes > 0);
  if ((latest?.ddosBps ?? 0) > 0) {
    return {
      tone: 'bad',
      text: html`Suspected attack traffic. Last minute ${minute}, ${age(endMs, nowMs)}.`,
    };
  }
  return { tone: 'good', text: html`Up to date, ${minute} (${age(endMs, nowMs)}).` };
}

export function stepOf(range: Range): string {
  return range.stepSeconds === 60 ? 'each minute' : `means of ${range.stepSeconds / 60} minutes`;
}

/** The newest minute over all addresses, and the sums of the range. */
function rangeStats({ minutes: rows, traffic, total }: TrafficPageOptions): Html {
  const newest = rows.find((row) => row.inboundBps !== null || row.outboundBps !== null)?.minute.getTime();
  const latest = rows.filter((row) => row.minute.getTime() === newest);
  const sum = (values: (number | null)[]) => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? undefined : known.reduce((all, value) => all + value, 0);
  };
  const shown = (value: number | null | undefined, format: (value: number) => string) =>
    value === undefined || value === null ? undefined : format(value);
  const received = traffic.latestReceivedMs;
  const source =
    newest === undefined
      ? undefined
      : html`minute ${formatTime(newest).slice(11)}${received !== null && html`, received ${age(received, traffic.nowMs)}`}`;
  const minutes = traffic.steps.reduce((all, step) => all + step.minutes, 0);
  const observed = minutes === 1 ? '1 minute observed' : `${formatCount(minutes)} minutes observed`;
  const percentile = (p95: number | null | undefined) =>
    p95 === null || p95 === undefined ? observed : `${observed}, 95th percentile ${formatBitRate(p95)}`;
  return stats(
    stat({ label: 'In', value: shown(sum(latest.map((row) => row.inboundBps)), formatBitRate), source }),
    stat({ label: 'Out', value: shown(sum(latest.map((row) => row.outboundBps)), formatBitRate), source }),
    stat({
      label: 'In, whole range',
      value: shown(sum(traffic.steps.map((step) => step.inboundBytes)), formatBytes),
      source: percentile(total?.inboundP95),
    }),
    stat({
      label: 'Out, whole range',
      value: shown(sum(traffic.steps.map((step) => step.outboundBytes)), formatBytes),
      source: percentile(total?.outboundP95),
    }),
  );
}

function applicationsSection(options: TrafficPageOptions, url: string): Html {
  const { server, ask, applications, applicationsFromMs, traffic } = options;
  const path = trafficPath(server.id);
  const most = applications[0];
  const since =
    applicationsFromMs === null
      ? 'Of the range above'
      : 'Of the last 24 hours: applications are kept no longer';
  const first = most === undefined ? '' : ` ${most.name} used the most: ${bytesText(most)}.`;
  return section(
    {
      title: 'Applications',
      id: 'applications',
      description: `Applications this server used or hosted. ${since}.${first}${partText(options)}`,
    },
    applicationsTable(
      applications,
      ownScansOf(options),
      { url, filters: ask.filters, nowMs: traffic.nowMs },
      {
        csvHref: fileOf(url, path, 'applications.csv'),
        jsonHref: fileOf(url, path, 'applications.json'),
      },
    ),
  );
}

/** What the provider's own port scans caused in the time of the applications; nothing where filters name applications. */
function ownScansOf({ traffic, ask, applicationsFromMs }: TrafficPageOptions) {
  const steps = namesApplications(ask.filters)
    ? []
    : traffic.steps.filter((step) => step.at.getTime() >= (applicationsFromMs ?? 0));
  const directions = sidesOf(ask.filters);
  const sum = (isCounted: boolean, of: 'ownScanInboundBytes' | 'ownScanOutboundBytes') =>
    isCounted ? steps.reduce((all, step) => all + (step[of] ?? 0), 0) : 0;
  return {
    inboundBytes: sum(directions.in, 'ownScanInboundBytes'),
    outboundBytes: sum(directions.out, 'ownScanOutboundBytes'),
  };
}

/** How much of the observed traffic the table has, so that its sum is not taken for all of it. */
function partText(options: TrafficPageOptions): string {
  const { applications, applicationsFromMs, ask, traffic } = options;
  if (applicationsFromMs !== null || ask.filters.length > 0) return '';
  const named = applications.reduce((sum, each) => sum + bytesOf(each), 0);
  const all = traffic.steps.reduce(
    (sum, step) => sum + (step.inboundBytes ?? 0) + (step.outboundBytes ?? 0),
    0,
  );
  if (all === 0 || named > all * 0.99) return '';
  const part = ` They are ${formatPercent(named / all, 0)} of all traffic, ${formatBytes(named)} of ${formatBytes(all)}`;
  const scans = bytesOf(ownScansOf(options));
  const own = scans === 0 ? '' : `; port scans by your provider are ${formatBytes(scans)}`;
  const hasRest = named + scans < all * 0.99;
  return `${part}${own}${hasRest ? '; the rest has no application, such as scans that nothing answers' : ''}.`;
}

/** Which address is shown, where the server has or had several. */
function addressChoice({ server, traffic, ask }: TrafficPageOptions, url: string): Content {
  const addresses = new Set([
    ...server.addresses.map((each) => each.address),
    ...traffic.series.map((series) => series.address),
  ]);
  if (ask.address !== null) addresses.add(ask.address);
  if (addresses.size < 2) return '';
  return html`<nav class="segments" aria-label="Address">${link(withQuery(url, { address: undefined }), 'All addresses', { kind: 'quiet', current: ask.address === null })}${[
    ...addresses,
  ].map((each) =>
    link(withQuery(url, { address: each }), each, { kind: 'quiet', current: each === ask.address }),
  )}</nav>`;
}
