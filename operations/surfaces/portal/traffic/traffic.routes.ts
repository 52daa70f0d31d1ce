/**
 * The Traffic tab of a server and what is below it: the explorer with this server, by application as well, its minutes with exact
 * bytes, and its usage by day and month.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import {
  customerBox,
  isStale,
  type LiveStatus,
  type MinuteRow,
  type MinuteStatus,
  type StepRow,
} from '#operations/protect/index.ts';
import { type ExplorerBody, explorerBody, printFilters } from '#service-kit/explorer/index.ts';
import type { App } from '#service-kit/http/index.ts';
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
  type Range,
  rangePicker,
  refreshing,
  sendPage,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { noSuchPage, sendWantedFile } from '#service-kit/web/index.ts';
import {
  completeExplorer,
  type ExplorerSurface,
  type Gap,
  gapsOf,
  readExplorer,
  registerExplorer,
} from '../../parts/index.ts';
import { portalFrame } from '../frame.ts';
import {
  attackAreas,
  attackState,
  attacksNow,
  isHeadline,
  readAttacksInChart,
  readOpenAttacks,
} from '../protect/attacks.ts';
import { deliverySection, liveCard, minutesCard } from '../protect/delivery-cards.ts';
import { findProtectedOf, findSettingsOf, type ProtectedServer } from '../protect/guard-protect.ts';
import { findServerOf, serverFrame } from '../servers/server-frame.ts';
import { type BandwidthOptions, bandwidthSections } from './bandwidth.section.ts';
import { readLivePage } from './live.routes.ts';
import { minutesSection, minutesShown } from './minutes.section.ts';
import { readOffTimes } from './off-times.ts';
import { type ServerAround, serverBody, serverPlace } from './server-explorer.ts';
import { eventHref, readServerFlags } from './server-flags.ts';
import {
  readAsk,
  sinceCreation,
  type TrafficAsk,
  TrafficQuery,
  trafficPath,
  trafficTabs,
} from './traffic-url.ts';

const schema = { params: Type.Object({ id: Type.String() }), querystring: TrafficQuery };

export type TrafficRequest = FastifyRequest<{
  Params: { id: string };
  Querystring: Partial<Record<'range' | 'from' | 'to' | 'address' | 'q' | 'by' | 'use', string>>;
}>;

export function registerTraffic(app: App, deps: Features): void {
  app.get('/servers/:id/traffic', { schema }, (request, reply) => showPage(deps, request, reply));
  app.get('/servers/:id/traffic/minutes', { schema }, (request, reply) => showMinutes(deps, request, reply));
  app.get('/servers/:id/traffic/usage', { schema }, async (request, reply) =>
    showUsage(deps, await findSettingsOf(deps, request), request, reply),
  );
  app.get('/servers/:id/traffic/complete', { schema }, async (request, reply) => {
    const { server } = await findProtectedOf(deps, request);
    return reply.send(await completeExplorer(deps, serverPlace(server, null), request));
  });
}

/** What a request asks of a server that was found for the visitor. */
export const readServerAsk = (deps: Features, request: TrafficRequest): TrafficAsk =>
  readAsk(request.query, deps.clock.nowMs());

async function showPage(deps: Features, request: TrafficRequest, reply: FastifyReply): Promise<FastifyReply> {
  const found = await findSettingsOf(deps, request);
  const asked = readServerAsk(deps, request);
  const { visitor, server } = found;
  if (!found.settings.viewsOn) {
    if (request.query.range === 'live') throw noSuchPage();
    return showUsage(deps, found, request, reply);
  }
  if (request.query.range === 'live')
    return sendPage(reply, await readLivePage(deps, found, request.query.address));
  const subject = { ...found.subject, address: asked.address };
  const [observed, live, told, read] = await Promise.all([
    deps.protectTraffic.readAddresses(visitor.actor, found.subject),
    deps.protectLive.readStatus(visitor.actor, subject),
    readTold(deps, found, asked),
    readExplorer(deps, serverPlace(server, asked.address), request),
  ]);
  const explorer = serverBody(read, told.around);
  const page = trafficPage(request, { ...told, observed, explorer, live });
  return sendWantedFile(request, reply, 'traffic') ?? sendPage(reply, page);
}

async function showMinutes(deps: Features, request: TrafficRequest, reply: FastifyReply) {
  const found = await findProtectedOf(deps, request);
  const asked = readServerAsk(deps, request);
  const [observed, told] = await Promise.all([
    deps.protectTraffic.readAddresses(found.visitor.actor, found.subject),
    readTold(deps, found, asked),
  ]);
  return sendPage(reply, minutesPage(request.query, { ...told, observed }));
}

async function showUsage(
  deps: Features,
  found: ProtectedServer,
  request: TrafficRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const usage = await readUsageOf(deps, found, readServerAsk(deps, request).isByMonth);
  return sendPage(reply, usagePage(found, { ...usage, nowMs: deps.clock.nowMs() }));
}

/** What the pages say above their parts, and the newest minutes. */
type Told = Awaited<ReturnType<typeof readTold>>;

async function readTold(deps: Features, found: ProtectedServer, asked: TrafficAsk) {
  const { visitor, server } = found;
  const subject = { ...found.subject, address: asked.address };
  const [steps, status, openAttacks] = await Promise.all([
    deps.protectTraffic.readSteps(visitor.actor, subject, asked.range),
    deps.protectTraffic.readStatus(visitor.actor, subject),
    readOpenAttacks(deps, visitor.actor, subject),
  ]);
  const around = await readAround(deps, found, asked, steps);
  const ask = { ...asked, range: around.range };
  const nowMs = deps.clock.nowMs();
  const { minutes, gaps } = await readNewestMinutes(deps, found, ask, { status, nowMs, steps });
  return { visitor, server, ask, steps, status, openAttacks, around, nowMs, minutes, minuteGaps: gaps };
}

/** What the chart shows around its lines: since when, why times have no values, and attacks. */
export async function readAround(
  deps: Features,
  { visitor, server, subject }: ProtectedServer,
  { range: asked, address }: TrafficAsk,
  steps: readonly StepRow[],
): Promise<ServerAround> {
  const nowMs = deps.clock.nowMs();
  const [off, attacks] = await Promise.all([
    readOffTimes(deps, { visitor, server }, nowMs),
    readAttacksInChart(deps, visitor.actor, { ...subject, address }, asked),
  ]);
  const range: Range = sinceCreation(asked, server.createdAt.getTime(), steps[0]?.at.getTime());
  const createdMs = Math.min(server.createdAt.getTime(), steps[0]?.at.getTime() ?? nowMs);
  const reasons: Gap[] = gapsOf({ steps, range, createdMs, off, nowMs });
  return { steps, range, reasons, areas: attackAreas(attacks) };
}

/** The newest minutes of the range, newest first, and why others are missing up to now. */
async function readNewestMinutes(
  deps: Features,
  { visitor, subject, server }: ProtectedServer,
  { range, address }: TrafficAsk,
  { status, nowMs, steps }: { status: MinuteStatus; nowMs: number; steps: readonly StepRow[] },
) {
  // However long the range is; its last step may hold minutes that were not observed.
  const lastStepMs = steps.at(-1)?.at.getTime() ?? 0;
  const newestMs = Math.max(
    (status.latestAt?.getTime() ?? 0) + 60_000,
    lastStepMs + range.stepSeconds * 1000,
  );
  const endMs = Math.min(range.toMs, newestMs);
  const fromMs = Math.max(range.fromMs, endMs - minutesShown * 60_000);
  if (endMs <= fromMs) return { minutes: [], gaps: [] };
  const of = { ...subject, address };
  const minutes = await deps.protectTraffic.readMinutes(visitor.actor, of, { fromMs, toMs: endMs });
  const toMs = Math.min(range.toMs, Math.ceil(nowMs / 60_000) * 60_000);
  const gaps = gapsOf({
    steps: [...Map.groupBy(minutes, (row) => row.minute.getTime())].map(([ms, rows]) => unobserved(ms, rows)),
    range: { fromMs, toMs, stepSeconds: 60 },
    createdMs: Math.min(server.createdAt.getTime(), fromMs),
    off: [],
    nowMs,
  });
  return { minutes: minutes.toSorted((a, b) => b.minute.getTime() - a.minute.getTime()), gaps };
}

/** A minute of which anything was observed has rows of its own, and no gap. */
function unobserved(ms: number, rows: readonly MinuteRow[]) {
  const isObserved = rows.some((row) => row.inboundBps !== null || row.outboundBps !== null);
  return { at: new Date(ms), minutes: isObserved ? 1 : 0, reason: isObserved ? null : rows[0]!.reason };
}

async function readUsageOf(deps: Features, { visitor, server }: ProtectedServer, isByMonth: boolean) {
  const { source, poolCounts } = deps.bandwidth;
  const tenant = await deps.accounts.findTenant(server.tenantId);
  if (tenant === null) throw noSuchPage();
  const [history, account] = await Promise.all([
    deps.bandwidth.readHistory(visitor.actor, server.tenantId, server.id, {
      granularity: isByMonth ? 'month' : 'day',
    }),
    deps.bandwidth.readAccount(visitor.actor, { tenantId: tenant.id, openedAt: tenant.createdAt }),
  ]);
  if (history === null) throw noSuchPage();
  const { startMs, endMs } = history.current.period;
  const month = { fromMs: startMs, toMs: endMs };
  const flags = isByMonth
    ? { flags: [], note: null }
    : await readServerFlags(deps, { visitor, server, range: month, address: null });
  return { history, account, source, poolCounts, flags, createdMs: server.createdAt.getTime() };
}

interface TrafficPageOptions extends Told {
  /** Addresses that minutes were received of. */
  observed: readonly string[];
  explorer: ExplorerBody;
  live: LiveStatus;
}

/**
 * The Traffic page of a server. It says first how fresh it is, then is the explorer with this server. What was not observed is a gap
 * with its reason and reads "unknown", never 0.
 */
function trafficPage(request: FastifyRequest, options: TrafficPageOptions): Html {
  const { visitor, server, ask, explorer, openAttacks, nowMs } = options;
  const { url, by } = explorer.view;
  const header = [
    refreshing({ id: 'traffic-state', url, everySeconds: 15 }, [
      pageHeader({ title: server.name, state: stateOf(options) }),
      latestStats(options),
    ]),
    attacksNow(server, openAttacks, nowMs),
  ];
  const body = [
    trafficTabs(server.id, by === 'application' ? 'applications' : 'now', url),
    html`<div class="toolbar">${rangePicker({ url, range: ask.range, nowMs, hasLive: true })}${addressChoice(options, url)}${exploreLink(options)}</div>`,
    explorerBody(request, explorer),
    refreshing(
      { id: 'traffic-delivery', url, everySeconds: 15 },
      deliverySection([minutesCard(options.status, nowMs), liveCard(options.live, nowMs)], nowMs),
    ),
  ];
  return serverFrame({ visitor, server, tab: 'traffic' }, header, body);
}

/** The newest minutes of the range, with the files of all. */
function minutesPage(query: TrafficRequest['query'], options: Omit<TrafficPageOptions, 'explorer' | 'live'>) {
  const { visitor, server, ask, openAttacks, nowMs, minutes, minuteGaps: gaps } = options;
  const path = trafficPath(server.id);
  const { range, from, to, address } = query;
  const url = withQuery(`${path}/minutes`, { range, from, to, address });
  const header = [
    refreshing(
      { id: 'traffic-state', url, everySeconds: 15 },
      pageHeader({ title: server.name, state: stateOf(options) }),
    ),
    attacksNow(server, openAttacks, nowMs),
  ];
  const fileOf = (file: string) => url.replace(`${path}/minutes`, `${path}/${file}`);
  return serverFrame({ visitor, server, tab: 'traffic', part: 'Minutes' }, header, [
    trafficTabs(server.id, 'minutes', url),
    html`<div class="toolbar">${rangePicker({ url, range: ask.range, nowMs })}${addressChoice(options, url)}</div>`,
    refreshing(
      { id: 'traffic-minutes', url, everySeconds: 15 },
      minutesSection({
        ...{ minutes, gaps, range: ask.range },
        ...{ csvHref: fileOf('minutes.csv'), jsonHref: fileOf('minutes.json') },
      }),
    ),
  ]);
}

/** Of every server; all that there is where its protection views are off (NET-1.6). */
function usagePage({ visitor, server, settings }: ProtectedServer, usage: Omit<BandwidthOptions, 'url'>) {
  const url = `${trafficPath(server.id)}/usage`;
  if (settings.viewsOn)
    return serverFrame(
      { visitor, server, tab: 'traffic', part: 'Usage' },
      pageHeader({ title: server.name }),
      [trafficTabs(server.id, 'usage', url), bandwidthSections({ ...usage, url })],
    );
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
    bandwidthSections({ ...usage, url }),
  ]);
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

function stateOf({ status, steps, openAttacks, nowMs }: Told): { tone: Tone; text: Content } {
  const latestMinuteMs = status.latestAt?.getTime() ?? null;
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
function latestStats({ minutes: rows, status, nowMs }: Told): Html {
  const newest = rows.find((row) => row.inboundBps !== null || row.outboundBps !== null)?.minute.getTime();
  const latest = rows.filter((row) => row.minute.getTime() === newest);
  const received = status.latestReceivedAt;
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
function addressChoice(
  { server, observed, ask }: Pick<TrafficPageOptions, 'server' | 'observed' | 'ask'>,
  url: string,
): Content {
  const addresses = new Set([...server.addresses.map((each) => each.address), ...observed]);
  if (ask.address !== null) addresses.add(ask.address);
  if (addresses.size < 2) return '';
  return html`<nav class="segments" aria-label="Address">${link(withQuery(url, { address: undefined }), 'All addresses', { kind: 'quiet', current: ask.address === null })}${[
    ...addresses,
  ].map((each) =>
    link(withQuery(url, { address: each }), each, { kind: 'quiet', current: each === ask.address }),
  )}</nav>`;
}

const allTrafficPath = '/client/traffic/';

const place: ExplorerSurface = {
  ...{ path: allTrafficPath, files: allTrafficPath },
  box: customerBox,
  defaultRange: '1h',
  deploy: { label: 'Deploy a server', href: '/client/servers/new' },
  example: 'server:web-1 port:443 -app:github.com',
  flowColumns: ['server', 'application'],
  whoOf: (request) => ({ ...request.visitor!, canSave: true, canShare: false }),
  frame: (request, title, text, content) =>
    portalFrame(
      {
        visitor: request.visitor!,
        title,
        current: 'traffic',
        ...(text === null ? {} : { toast: { tone: 'good', text } }),
      },
      content,
    ),
  eventHref,
  hrefOf: ({ serverId }, range) => (serverId === null ? null : withQuery(trafficPath(serverId), { range })),
};

/** The traffic of all servers of the signed-in person. */
export function registerAllTraffic(app: App, deps: Features): void {
  registerExplorer(app, deps, place, '/client');
}

const Query = Type.Object({ by: Type.Optional(Type.String()) });

/** The former Bandwidth tab: its usage is below the Traffic tab. */
export function registerBandwidth(app: App, deps: Features): void {
  app.get(
    '/servers/:id/bandwidth',
    { schema: { params: Type.Object({ id: Type.String() }), querystring: Query } },
    async (request, reply) => {
      const { server } = await findServerOf(deps.servers, request);
      const query = request.query.by === 'month' ? '?use=month' : '';
      return reply.redirect(`/client/servers/${server.id}/traffic/usage${query}`, 303);
    },
  );
}
