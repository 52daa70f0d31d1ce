/** The Protect tab: what was observed of a server's addresses, as a page, and as exact values for programs. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { hasCode } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type { MinuteRow, ProtectTraffic } from '#operations/protect/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { type Range, readRange, sendPage } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import { findServerOf } from '../servers/guard-server.ts';
import { applicationsCsv, minutesCsv } from './protect.csv.ts';
import { protectPage, trafficChartJson } from './protect.page.ts';

export interface ProtectDeps {
  servers: Servers;
  protectTraffic: ProtectTraffic;
  clock: Clock;
}

const Id = Type.Object({ id: Type.String() });
const Query = Type.Object({
  range: Type.Optional(Type.String()),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  address: Type.Optional(Type.String()),
});
const schema = { params: Id, querystring: Query };
/** Rows of the table on the page; the files have all. */
const minutesShown = 60;

type ProtectRequest = FastifyRequest<{
  Params: { id: string };
  Querystring: { range?: string; from?: string; to?: string; address?: string };
}>;

export function registerProtect(app: App, deps: ProtectDeps): void {
  const path = '/servers/:id/protect';

  app.get(path, { schema }, async (request, reply) => {
    const { visitor, server, subject, range } = await readAsk(deps, request);
    const traffic = await deps.protectTraffic.read(visitor.actor, subject, range);
    // The newest minutes of the range, however long it is.
    const endMs = Math.min(range.toMs, (traffic.latestMinuteMs ?? 0) + 60_000);
    const fromMs = Math.max(range.fromMs, endMs - minutesShown * 60_000);
    const minutes =
      endMs > fromMs
        ? await deps.protectTraffic.readMinutes(visitor.actor, subject, { fromMs, toMs: endMs })
        : [];
    const page = { visitor, server, traffic, minutes: newestFirst(minutes), range, address: subject.address };
    return sendPage(reply, protectPage(page));
  });

  app.get(`${path}/chart.json`, { schema }, async (request, reply) => {
    const { visitor, subject, range } = await readAsk(deps, request);
    const steps = await deps.protectTraffic.readSteps(visitor.actor, subject, range);
    return reply.header('cache-control', 'no-store').send(trafficChartJson(steps, range));
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

/** The order of addresses within a minute stays. */
function newestFirst(minutes: readonly MinuteRow[]): MinuteRow[] {
  return minutes.toSorted((a, b) => b.minute.getTime() - a.minute.getTime());
}

async function readAsk(deps: ProtectDeps, request: ProtectRequest) {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const wanted = request.query.address;
  const subject = {
    serverId: server.id,
    tenantId: server.tenantId,
    address: wanted ? (canonicalAddress(wanted) ?? wanted) : null,
  };
  return { visitor, server, subject, range: readRange(request.query, deps.clock.nowMs(), '6h') };
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
    applications: row.applications,
  };
}
