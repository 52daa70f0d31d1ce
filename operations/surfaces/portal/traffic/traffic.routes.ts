/** The Traffic tab: what was observed of a server's addresses, what used the most of it, and its usage by day and month. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import {
  type MinuteRow,
  namesApplications,
  type ProtectIncidents,
  type ProtectTraffic,
  type Usage,
} from '#operations/protect/index.ts';
import { sidesOf } from '#service-kit/explorer/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type ChartData, type Range, sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { type Flags, type Gap, gapsOf } from '../../parts/index.ts';
import { attackAreas } from '../protect/attacks.ts';
import { findSettingsOf, type ProtectedServer } from '../protect/guard-protect.ts';
import { type AttackReaderDeps, readAttacksInChart, readOpenAttacks } from '../protect/read-attacks.ts';
import { directionChartData, percentileLines, trafficChartData } from './explored-chart.ts';
import { type LivePagesDeps, readLivePage } from './live.routes.ts';
import { minutesShown } from './minutes.section.ts';
import { readOffTimes } from './off-times.ts';
import { type ApplicationView, readApplicationChart, readApplications } from './read-applications.ts';
import { readServerFlags } from './server-flags.ts';
import { trafficPage, trafficPath, usageOnlyPage } from './traffic.page.ts';
import { readAsk, sinceCreation, type TrafficAsk, TrafficQuery, urlOf } from './traffic-url.ts';

export interface TrafficDeps extends LivePagesDeps, AttackReaderDeps {
  accounts: Accounts;
  bandwidth: Bandwidth;
  protectIncidents: Pick<ProtectIncidents, 'list' | 'readStatus'>;
  protectTraffic: ProtectTraffic;
}

const schema = { params: Type.Object({ id: Type.String() }), querystring: TrafficQuery };

export type TrafficRequest = FastifyRequest<{
  Params: { id: string };
  Querystring: Partial<Record<'range' | 'from' | 'to' | 'address' | 'q' | 'by' | 'use', string>>;
}>;

export function registerTraffic(app: App, deps: TrafficDeps): void {
  app.get('/servers/:id/traffic', { schema }, (request, reply) => showPage(deps, request, reply));
}

/** The view that a request asks for, of a server that was found for the visitor. */
export function readServerAsk(deps: Pick<TrafficDeps, 'clock'>, request: TrafficRequest): TrafficAsk {
  return readAsk(request.query, deps.clock.nowMs());
}

async function showPage(
  deps: TrafficDeps,
  request: TrafficRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const found = await findSettingsOf(deps, request);
  const asked = readServerAsk(deps, request);
  const { visitor, server } = found;
  const usage = await readUsageOf(deps, found, asked.isByMonth);
  if (!found.settings.viewsOn) {
    if (request.query.range === 'live') throw noSuchPage();
    const url = urlOf(trafficPath(server.id), asked);
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, usageOnlyPage({ visitor, server, usage, nowMs, url }));
  }
  if (request.query.range === 'live')
    return sendPage(reply, await readLivePage(deps, found, request.query.address));
  const subject = { ...found.subject, address: asked.address };
  const [traffic, live, minutes, view] = await Promise.all([
    deps.protectTraffic.read(visitor.actor, subject, asked.range),
    deps.protectLive.readStatus(visitor.actor, subject),
    deps.protectTraffic.readStatus(visitor.actor, subject),
    readView(deps, found, asked),
  ]);
  const range = sinceCreation(asked.range, server.createdAt.getTime(), traffic.steps[0]?.at.getTime());
  const [attacks, openAttacks, around] = await Promise.all([
    readAttacksInChart(deps, visitor.actor, subject, asked.range),
    readOpenAttacks(deps, visitor.actor, subject),
    readAround(deps, found, { range, address: asked.address, steps: traffic.steps }),
  ]);
  const newest = await readNewestMinutes(deps, found, { ...asked, range }, traffic);
  const page = trafficPage({
    ...{ visitor, server, traffic, openAttacks, usage },
    ask: { ...asked, range },
    total: view.usage.total,
    note: around.flags.note,
    chartData: {
      ...chartOf(view, { ...asked, range }, traffic.steps, attackAreas(attacks)),
      reasons: around.reasons,
      flags: around.flags.flags,
    },
    applications: view.applications.applications,
    ports: view.applications.ports,
    applicationsFromMs: view.applications.isShorter ? view.applications.use.fromMs : null,
    minutes: newest.minutes,
    minuteGaps: newest.gaps,
    delivery: { live, minutes },
  });
  return sendPage(reply, page);
}

interface AroundAsk {
  range: Range;
  /** Attacks and scans of this address alone; null: of all. */
  address: string | null;
  steps: Parameters<typeof gapsOf>[0]['steps'];
}

/** Why times have no values, and what happened to the server: what the chart shows around its lines. */
export async function readAround(
  deps: Pick<TrafficDeps, 'serverHistory' | 'servers' | 'clock'>,
  { visitor, server }: ProtectedServer,
  { range, address, steps }: AroundAsk,
): Promise<{ reasons: Gap[]; flags: Flags }> {
  const nowMs = deps.clock.nowMs();
  const [off, flags] = await Promise.all([
    readOffTimes(deps, { visitor, server }, nowMs),
    readServerFlags(deps, { visitor, server, range, address }),
  ]);
  const createdMs = Math.min(server.createdAt.getTime(), steps[0]?.at.getTime() ?? nowMs);
  return { reasons: gapsOf({ steps, range, createdMs, off, nowMs }), flags };
}

/** What the explorer's part of the page shows. */
interface View {
  usage: Usage;
  applications: ApplicationView;
  /** Null where the minutes themselves are the chart. */
  chart: ChartData | null;
}

export async function readView(
  deps: Pick<TrafficDeps, 'protectTraffic'>,
  { visitor, server }: ProtectedServer,
  { range, filters, by, address }: TrafficAsk,
): Promise<View> {
  const { actor } = visitor;
  const subject = { serverIds: [server.id], addresses: address === null ? null : [address] };
  const usage = await deps.protectTraffic.readUsage(actor, subject, range);
  const isPreviousObserved = (usage.total?.previousMinutes ?? 0) > 0;
  const applications = await readApplications(deps.protectTraffic, actor, subject, {
    ...{ range, filters, isPreviousObserved },
  });
  if (by === null && !namesApplications(filters)) return { usage, applications, chart: null };
  const chart = await readApplicationChart(deps.protectTraffic, actor, subject, {
    ...{ range, filters, by, observed: usage.steps, found: applications, serverName: () => server.name },
  });
  return { usage, applications, chart };
}

/** The minutes with all that is known of them, one direction of them, or lines of applications. */
export function chartOf(
  { usage, chart }: View,
  { range, filters }: TrafficAsk,
  ...[steps, areas]: [Parameters<typeof trafficChartData>[0], Parameters<typeof trafficChartData>[2]]
): ChartData {
  const frame = { range: { fromMs: range.fromMs, toMs: range.toMs }, areas };
  if (chart !== null) return { ...chart, ...frame };
  const directions = sidesOf(filters);
  const lines = percentileLines(usage.total, directions);
  if (filters.length === 0) return { ...trafficChartData(steps, range, areas), lines };
  return { ...directionChartData(usage.steps, range, directions), ...frame, lines };
}

/** The newest minutes of the range, newest first, and why others are missing up to now. */
async function readNewestMinutes(
  deps: TrafficDeps,
  { visitor, subject, server }: ProtectedServer,
  { range, address }: TrafficAsk,
  { latestMinuteMs, nowMs, steps }: { latestMinuteMs: number | null; nowMs: number; steps: { at: Date }[] },
) {
  // However long the range is; its last step may hold minutes that were not observed.
  const lastStepMs = steps.at(-1)?.at.getTime() ?? 0;
  const newestMs = Math.max((latestMinuteMs ?? 0) + 60_000, lastStepMs + range.stepSeconds * 1000);
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

async function readUsageOf(deps: TrafficDeps, { visitor, server }: ProtectedServer, isByMonth: boolean) {
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
