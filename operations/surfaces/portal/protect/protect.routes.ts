/** The Protect tab: what was observed of a server's addresses, as a page, and as exact values for programs. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type {
  MinuteRow,
  ProtectFindings,
  ProtectIncidents,
  ProtectScans,
  ProtectTraffic,
} from '#operations/protect/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { type Range, readRange, sendPage } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import { attackAreas } from './attacks.ts';
import { findProtectedOf, findSettingsOf, type ProtectedServer } from './guard-protect.ts';
import { type LivePagesDeps, readLivePage } from './live.routes.ts';
import { toastOf } from './ports.routes.ts';
import { applicationsCsv, minutesCsv } from './protect.csv.ts';
import { protectPage, trafficChartJson } from './protect.page.ts';
import { type AttackReaderDeps, readAttacks, readAttacksInChart } from './read-attacks.ts';
import { viewsOffPage } from './settings.page.ts';

export interface ProtectDeps extends LivePagesDeps, AttackReaderDeps {
  protectIncidents: Pick<ProtectIncidents, 'list' | 'readStatus'>;
  protectScans: Pick<ProtectScans, 'read' | 'readStatus'>;
  protectFindings: Pick<ProtectFindings, 'list' | 'read' | 'readStatus'>;
  protectTraffic: ProtectTraffic;
}

const Id = Type.Object({ id: Type.String() });
const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  address: Type.Optional(Type.String()),
  scan: Type.Optional(Type.String({ maxLength: 40 })),
});
const schema = { params: Id, querystring: Query };
/** Rows of the table on the page; the files have all. */
const minutesShown = 60;
const worstShown = 5;

type ProtectRequest = FastifyRequest<{
  Params: { id: string };
  Querystring: { range?: string; from?: string; to?: string; address?: string; scan?: string };
}>;

export function registerProtect(app: App, deps: ProtectDeps): void {
  const path = '/servers/:id/protect';

  app.get(path, { schema }, (request, reply) => showPage(deps, request, reply));

  app.get(`${path}/chart.json`, { schema }, async (request, reply) => {
    const { visitor, subject, range } = await readAsk(deps, request);
    const [steps, attacks] = await Promise.all([
      deps.protectTraffic.readSteps(visitor.actor, subject, range),
      readAttacksInChart(deps, visitor.actor, subject, range),
    ]);
    const areas = attackAreas(attacks, deps.clock.nowMs());
    return reply.header('cache-control', 'no-store').send(trafficChartJson(steps, range, areas));
  });

  app.get(`${path}/minutes.json`, { schema }, async (request, reply) => {
    const { server, range, minutes } = await readExactMinutes(deps, request);
    return reply.header('cache-control', 'no-store').send({
      server_id: server.id,
      from: new Date(range.fromMs).toISOString(),
      to: new Date(range.toMs).toISOString(),
      minutes: minutes.map(toWire),
    });
  });

  app.get(`${path}/minutes.csv`, { schema }, async (request, reply) => {
    const { server, minutes } = await readExactMinutes(deps, request);
    return sendCsv(reply, `server-${server.id}-minutes.csv`, minutesCsv(minutes));
  });

  app.get(`${path}/applications.json`, { schema }, async (request, reply) => {
    const { visitor, server, subject } = await readAsk(deps, request);
    const applications = await deps.protectTraffic.readApplications(visitor.actor, subject);
    return reply.header('cache-control', 'no-store').send({
      server_id: server.id,
      applications: applications.map((each) => ({
        name: each.name,
        transport: each.transport,
        server_port: each.serverPort,
        inbound_bytes: each.inboundBytes,
        outbound_bytes: each.outboundBytes,
        last_sent_at: each.lastSentAt.toISOString(),
      })),
    });
  });

  app.get(`${path}/applications.csv`, { schema }, async (request, reply) => {
    const { visitor, server, subject } = await readAsk(deps, request);
    const applications = await deps.protectTraffic.readApplications(visitor.actor, subject);
    return sendCsv(reply, `server-${server.id}-applications.csv`, applicationsCsv(applications));
  });
}

async function showPage(
  deps: ProtectDeps,
  request: ProtectRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const found = await findSettingsOf(deps, request);
  if (!found.settings.viewsOn) return sendPage(reply, viewsOffPage(found), 404);
  if (request.query.range === 'live')
    return sendPage(reply, await readLivePage(deps, found, request.query.address));
  const { visitor, server, settings, subject, range } = askOf(deps, request, found);
  const [traffic, live, minutesStatus, attacksStatus, scansStatus, ports] = await Promise.all([
    deps.protectTraffic.read(visitor.actor, subject, range),
    deps.protectLive.readStatus(visitor.actor, subject),
    deps.protectTraffic.readStatus(visitor.actor, subject),
    deps.protectIncidents.readStatus(visitor.actor, subject),
    deps.protectScans.readStatus(visitor.actor, subject),
    deps.protectScans.read(visitor.actor, subject),
  ]);
  // The newest minutes of the range, however long it is; the last step may hold minutes that were not observed.
  const lastStepMs = traffic.steps.at(-1)?.at.getTime() ?? 0;
  const newestMs = Math.max((traffic.latestMinuteMs ?? 0) + 60_000, lastStepMs + range.stepSeconds * 1000);
  const endMs = Math.min(range.toMs, newestMs);
  const fromMs = Math.max(range.fromMs, endMs - minutesShown * 60_000);
  const minutes =
    endMs > fromMs
      ? await deps.protectTraffic.readMinutes(visitor.actor, subject, { fromMs, toMs: endMs })
      : [];
  const [findings, worst, findingsStatus] = await Promise.all([
    deps.protectFindings.read(visitor.actor, subject),
    deps.protectFindings.list(visitor.actor, subject, { state: 'active', limit: worstShown }),
    deps.protectFindings.readStatus(visitor.actor, subject),
  ]);
  const attacks = await readAttacks(deps, visitor.actor, subject, range);
  const page = {
    visitor,
    server,
    traffic,
    minutes: newestFirst(minutes),
    range,
    address: subject.address,
    settings,
    delivery: {
      ...{ live, minutes: minutesStatus, attacks: attacksStatus, scans: scansStatus },
      findings: findingsStatus,
    },
    attacks,
    ports,
    findings: { ...findings, worst, hasScan: scansStatus.latestAt !== null },
    toast: toastOf(request.query.scan),
  };
  return sendPage(reply, protectPage(page));
}

/** The order of addresses within a minute stays. */
function newestFirst(minutes: readonly MinuteRow[]): MinuteRow[] {
  return minutes.toSorted((a, b) => b.minute.getTime() - a.minute.getTime());
}

async function readAsk(deps: ProtectDeps, request: ProtectRequest) {
  return askOf(deps, request, await findProtectedOf(deps, request));
}

function askOf(deps: ProtectDeps, request: ProtectRequest, found: ProtectedServer) {
  const wanted = request.query.address;
  const address = wanted ? (canonicalAddress(wanted) ?? wanted) : null;
  const range = readRange(request.query, deps.clock.nowMs(), '6h');
  return { ...found, subject: { ...found.subject, address }, range };
}

async function readExactMinutes(
  deps: ProtectDeps,
  request: ProtectRequest,
): Promise<{ server: { id: number }; range: Range; minutes: MinuteRow[] }> {
  const { visitor, server, subject, range } = await readAsk(deps, request);
  if (range.error !== undefined) throw unusableRange(range.error);
  try {
    return { server, range, minutes: await deps.protectTraffic.readMinutes(visitor.actor, subject, range) };
  } catch (error) {
    if (hasCode(error, 'protect_traffic.range_too_long')) throw unusableRange((error as Error).message);
    throw error;
  }
}

function unusableRange(message: string): HttpError {
  return new HttpError(422, { code: 'validation_failed', reason: 'invalid_fields', message });
}

function toWire(row: MinuteRow) {
  return {
    timestamp: row.minute.toISOString(),
    address: row.address,
    inbound_bytes: row.inboundBytes,
    outbound_bytes: row.outboundBytes,
    inbound_bps: row.inboundBps,
    outbound_bps: row.outboundBps,
    pps: row.pps,
    expected_bps: row.expectedBps,
    expected_pps: row.expectedPps,
    ddos_bps: row.ddosBps,
    ddos_pps: row.ddosPps,
    coverage: row.coverage,
    reason: row.reason,
    applications: row.applications,
  };
}
