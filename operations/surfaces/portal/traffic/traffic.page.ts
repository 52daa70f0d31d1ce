/**
 * The Traffic page of a server. It says first how fresh it is, then is the explorer with this server, then lists minutes with their exact
 * bytes and usage by day. What was not observed is a gap with its reason and reads "unknown", never 0.
 */
import type { FastifyRequest } from 'fastify';
import {
  type IncidentRow,
  isStale,
  type LiveStatus,
  type MinuteRow,
  type MinuteStatus,
  type StepRow,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/servers/index.ts';
import { type ExplorerBody, explorerBody, printFilters } from '#service-kit/explorer/index.ts';
import {
  age,
  banner,
  type Content,
  formatBitRate,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  rangePicker,
  refreshing,
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
import { minutesSection } from './minutes.section.ts';
import { type TrafficAsk, trafficPath } from './traffic-url.ts';

export interface TrafficPageOptions {
  visitor: Visitor;
  server: Server;
  ask: TrafficAsk;
  /** Addresses that minutes were received of. */
  observed: readonly string[];
  steps: readonly StepRow[];
  nowMs: number;
  explorer: ExplorerBody;
  /** The newest of the range, newest first. */
  minutes: readonly MinuteRow[];
  minuteGaps: readonly Gap[];
  openAttacks: readonly IncidentRow[];
  delivery: { live: LiveStatus; minutes: MinuteStatus };
  usage: Omit<BandwidthOptions, 'url' | 'nowMs'>;
}

export function trafficPage(request: FastifyRequest, options: TrafficPageOptions): Html {
  const { visitor, server, ask, explorer, openAttacks, nowMs } = options;
  const { url } = explorer.view;
  const header = [
    refreshing({ id: 'traffic-state', url, everySeconds: 15 }, [
      pageHeader({ title: server.name, state: stateOf(options) }),
      latestStats(options),
    ]),
    attacksNow(server, openAttacks, nowMs),
  ];
  const body = [
    html`<div class="toolbar">${rangePicker({ url, range: ask.range, nowMs, hasLive: true })}${addressChoice(options)}${exploreLink(options)}</div>`,
    explorerBody(request, explorer),
    refreshing(
      { id: 'traffic-minutes', url, everySeconds: 15 },
      minutesSection({
        minutes: options.minutes,
        gaps: options.minuteGaps,
        range: ask.range,
        csvHref: fileOf(options, 'minutes.csv'),
        jsonHref: fileOf(options, 'minutes.json'),
      }),
    ),
    bandwidthSections({ ...options.usage, url, nowMs }),
    refreshing(
      { id: 'traffic-delivery', url, everySeconds: 15 },
      deliverySection(
        [minutesCard(options.delivery.minutes, nowMs), liveCard(options.delivery.live, nowMs)],
        nowMs,
      ),
    ),
  ];
  return serverFrame({ visitor, server, tab: 'traffic' }, header, body);
}

function fileOf({ server, explorer }: TrafficPageOptions, file: string): string {
  const path = trafficPath(server.id);
  return explorer.view.url.replace(path, `${path}/${file}`);
}

/** The explorer with this server and range: previous period, flows, saved views and tables by any dimension. */
function exploreLink({ server, explorer }: TrafficPageOptions): Content {
  const { url, filters } = explorer.view;
  const values = new URLSearchParams(url.split('?')[1]);
  const own = { dimension: 'server' as const, is: true, values: [String(server.id)] };
  const [range, from, to] = ['range', 'from', 'to'].map((name) => values.get(name) ?? undefined);
  const q = printFilters([own, ...filters]);
  return link(withQuery('/client/traffic/', { q, range: range ?? '6h', from, to }), 'Explore', {
    kind: 'button',
  });
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

function stateOf({ delivery, steps, openAttacks, nowMs }: TrafficPageOptions): {
  tone: Tone;
  text: Content;
} {
  const latestMinuteMs = delivery.minutes.latestAt?.getTime() ?? null;
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
  const latest = steps.findLast((step) => step.minutes > 0);
  if ((latest?.ddosBps ?? 0) > 0) {
    return {
      tone: 'bad',
      text: html`Suspected attack traffic. Last minute ${minute}, ${age(endMs, nowMs)}.`,
    };
  }
  return { tone: 'good', text: html`Up to date, ${minute} (${age(endMs, nowMs)}).` };
}

/** The newest minute over all addresses. */
function latestStats({ minutes: rows, delivery, nowMs }: TrafficPageOptions): Html {
  const newest = rows.find((row) => row.inboundBps !== null || row.outboundBps !== null)?.minute.getTime();
  const latest = rows.filter((row) => row.minute.getTime() === newest);
  const received = delivery.minutes.latestReceivedAt;
  const source =
    newest === undefined
      ? undefined
      : html`minute ${formatTime(newest).slice(11)}${received !== null && html`, received ${age(received.getTime(), nowMs)}`}`;
  const rate = (label: string, of: 'inboundBps' | 'outboundBps') => {
    const known = latest.flatMap((row) => row[of] ?? []);
    const sum = known.reduce((all, value) => all + value, 0);
    return stat({ label, value: known.length === 0 ? undefined : formatBitRate(sum), source });
  };
  return stats(rate('In, last minute', 'inboundBps'), rate('Out, last minute', 'outboundBps'));
}

/** Which address is shown, where the server has or had several. */
function addressChoice({ server, observed, ask, explorer }: TrafficPageOptions): Content {
  const { url } = explorer.view;
  const addresses = new Set([...server.addresses.map((each) => each.address), ...observed]);
  if (ask.address !== null) addresses.add(ask.address);
  if (addresses.size < 2) return '';
  return html`<nav class="segments" aria-label="Address">${link(withQuery(url, { address: undefined }), 'All addresses', { kind: 'quiet', current: ask.address === null })}${[
    ...addresses,
  ].map((each) =>
    link(withQuery(url, { address: each }), each, { kind: 'quiet', current: each === ask.address }),
  )}</nav>`;
}
