/** The Traffic tab: what was observed of a server's addresses, what used the most of it, and its usage by day and month. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Accounts } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import type {
  MinuteRow,
  MinuteStatus,
  ProtectIncidents,
  ProtectTraffic,
  StepRow,
} from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type Range, sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage, sendWantedFile } from '#service-kit/web/index.ts';
import { completeExplorer, type Gap, gapsOf, readExplorer } from '../../parts/index.ts';
import { attackAreas } from '../protect/attacks.ts';
import { findProtectedOf, findSettingsOf, type ProtectedServer } from '../protect/guard-protect.ts';
import { type AttackReaderDeps, readAttacksInChart, readOpenAttacks } from '../protect/read-attacks.ts';
import { type LivePagesDeps, readLivePage } from './live.routes.ts';
import { minutesShown } from './minutes.section.ts';
import { readOffTimes } from './off-times.ts';
import { type ServerAround, serverBody, serverPlace } from './server-explorer.ts';
import { readServerFlags } from './server-flags.ts';
import { trafficPage, usageOnlyPage } from './traffic.page.ts';
import { readAsk, sinceCreation, type TrafficAsk, TrafficQuery } from './traffic-url.ts';

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
  app.get('/servers/:id/traffic/complete', { schema }, async (request, reply) => {
    const { server } = await findProtectedOf(deps, request);
    return reply.send(await completeExplorer(deps, serverPlace(server, null), request));
  });
}

/** What a request asks of a server that was found for the visitor. */
export const readServerAsk = (deps: Pick<TrafficDeps, 'clock'>, request: TrafficRequest): TrafficAsk =>
  readAsk(request.query, deps.clock.nowMs());

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
    const nowMs = deps.clock.nowMs();
    return sendPage(reply, usageOnlyPage({ visitor, server, usage, nowMs, url: request.url }));
  }
  if (request.query.range === 'live')
    return sendPage(reply, await readLivePage(deps, found, request.query.address));
  const subject = { ...found.subject, address: asked.address };
  const [steps, observed, live, status, read] = await Promise.all([
    deps.protectTraffic.readSteps(visitor.actor, subject, asked.range),
    deps.protectTraffic.readAddresses(visitor.actor, found.subject),
    deps.protectLive.readStatus(visitor.actor, subject),
    deps.protectTraffic.readStatus(visitor.actor, subject),
    readExplorer(deps, serverPlace(server, asked.address), request),
  ]);
  const [around, openAttacks] = await Promise.all([
    readAround(deps, found, asked, steps),
    readOpenAttacks(deps, visitor.actor, subject),
  ]);
  const ask = { ...asked, range: around.range };
  const nowMs = deps.clock.nowMs();
  const newest = await readNewestMinutes(deps, found, ask, { status, nowMs, steps });
  const page = trafficPage(request, {
    ...{ visitor, server, observed, steps, nowMs, openAttacks, usage, ask },
    explorer: serverBody(read, around),
    minutes: newest.minutes,
    minuteGaps: newest.gaps,
    delivery: { live, minutes: status },
  });
  return sendWantedFile(request, reply, 'traffic') ?? sendPage(reply, page);
}

/** What the chart shows around its lines: since when, why times have no values, and attacks. */
export async function readAround(
  deps: Pick<TrafficDeps, 'servers' | 'clock'> & AttackReaderDeps,
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
  deps: TrafficDeps,
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
