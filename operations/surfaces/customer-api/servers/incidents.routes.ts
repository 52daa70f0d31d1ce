import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import { type IncidentState, incidentStates } from '#contracts/incidents.ts';
import type { Features } from '#operations/features.ts';
import { actionsOf, type IncidentRow } from '#operations/protect/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import type { Call, Handlers } from '../call.ts';
import { idOf, invalidCursor, pageOfFound, queryReader } from '../request-parts.ts';
import { invalidFields } from '../validate-input.ts';
import { findServer } from './servers.routes.ts';

const readListQuery = queryReader(schemas.ListIncidentsQuery);
const limitDefault = 50;
/** Milliseconds of at most 15 digits are a time that a date can be. */
const cursorPattern = /^incidents:(\d{1,15}):([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Attacks of a server, as its Protect page lists them; a 404 while its protection views are off (NET-1.6). */
export function incidentHandlers(deps: Features) {
  const { protectIncidents } = deps;
  return {
    async listServerIncidents(call, request, reply) {
      const { actor } = call;
      const subject = await findProtected(deps, call, request);
      const { limit, after, ...filter } = readQuery(request);
      const [found, total] = await Promise.all([
        protectIncidents.list(actor, subject, { ...filter, after, limit: limit + 1 }),
        protectIncidents.count(actor, subject, filter),
      ]);
      const { page, pagination } = pageOfFound(request, reply, found, {
        limit,
        total,
        cursorOf: writeCursor,
      });
      return { incidents: page.map(showIncident), pagination };
    },
  } satisfies Handlers;
}

/**
 * The server of the path, for what its protection views show. A missing one, and one whose views are off, is a 404 before query and
 * body are validated.
 */
export async function findProtected(
  { servers, protectSettings }: Features,
  call: Call,
  request: FastifyRequest,
): Promise<{ serverId: number; tenantId: number }> {
  const server = await findServer(servers, call, idOf(request));
  const subject = { serverId: server.id, tenantId: server.tenantId };
  if ((await protectSettings.find(call.actor, subject)).viewsOn) return subject;
  throw protectDisabled();
}

/** The 404 while the protection views of a server are off. */
export function protectDisabled(): HttpError {
  return new HttpError(404, {
    code: 'not_found',
    reason: 'protect_disabled',
    message: 'The protection views of this server are off. Turn them on on its Protect page in the portal.',
  });
}

function readQuery(request: FastifyRequest) {
  const given = request.query as { state?: unknown };
  // Before the schema, because this says what would be right.
  if (typeof given.state === 'string') statesOf(given.state);
  const { state, severity, limit = limitDefault, cursor } = readListQuery(request);
  return {
    limit,
    severity,
    states: state === undefined ? undefined : statesOf(state),
    after: cursor === undefined ? undefined : readCursor(cursor),
  };
}

function statesOf(text: string): IncidentState[] {
  const states = text.split(',').map((one) => one.trim());
  const isState = (one: string): one is IncidentState => (incidentStates as readonly string[]).includes(one);
  if (states.every(isState)) return states;
  const allowed = [...incidentStates];
  throw invalidFields([
    { path: 'state', code: 'unknown_value', message: 'There is no such state.', allowed },
  ]);
}

/** Opaque to callers: where the page ended. */
function writeCursor({ startedAt, id }: IncidentRow): string {
  return Buffer.from(`incidents:${startedAt.getTime()}:${id}`).toString('base64url');
}

function readCursor(cursor: string): { startedMs: number; id: string } {
  const [, ms, id] = cursorPattern.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (ms === undefined || id === undefined) throw invalidCursor();
  return { startedMs: Number(ms), id };
}

function showIncident(incident: IncidentRow): schemas.Incident {
  const { currentBps, currentPps } = incident;
  return {
    id: incident.id,
    server_id: incident.serverId,
    address: incident.address,
    direction: incident.direction,
    class: incident.class,
    severity: incident.severity,
    state: incident.state,
    drill: incident.isDrill,
    started_at: incident.startedAt.toISOString(),
    detected_at: incident.detectedAt.toISOString(),
    last_observed_at: incident.lastObservedAt.toISOString(),
    recovered_at: incident.recoveredAt?.toISOString() ?? null,
    current: currentBps === null || currentPps === null ? null : { bps: currentBps, pps: currentPps },
    peak: {
      bps: incident.peakBps,
      bps_at: incident.peakBpsAt.toISOString(),
      pps: incident.peakPps,
      pps_at: incident.peakPpsAt.toISOString(),
    },
    totals: { bytes: incident.totalBytes, packets: incident.totalPackets },
    coverage: incident.coverage,
    vectors: incident.vectors.map(({ details, ...vector }) => ({
      ...vector,
      source_ports: details?.source_ports ?? [],
      protocols: details?.protocols ?? [],
      started_at: details?.started_at ?? null,
      last_observed_at: details?.last_observed_at ?? null,
    })),
    actions: actionsOf(incident).map((action) => ({ ...action })),
  };
}
