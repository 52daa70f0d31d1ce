/** Attacks of a server: what goes on now, the list, one of them, and `incidents.json` for programs. */
import { Type } from 'typebox';
import { actionsOf, type IncidentRow, type ProtectIncidents } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { readIncidentCursor, writeIncidentCursor } from '../../parts/index.ts';
import { attacksNow } from './attacks.ts';
import { findProtectedOf, type ProtectGuardDeps } from './guard-protect.ts';
import { incidentPage, incidentsPage } from './incident.page.ts';
import { type AttackReaderDeps, readOpenAttacks } from './read-attacks.ts';

const Id = Type.Object({ id: Type.String() });
const IncidentId = Type.Object({ id: Type.String(), incident: Type.String() });
const ListQuery = Type.Object({
  severity: Type.Optional(Type.String({ maxLength: 10 })),
  after: Type.Optional(Type.String({ maxLength: 60 })),
});
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const pageSize = 50;
/** Of each severity, the newest. */
const listedMax = 200;

export function registerIncidents(
  app: App,
  deps: ProtectGuardDeps &
    AttackReaderDeps & {
      protectIncidents: Pick<ProtectIncidents, 'list' | 'find'>;
    },
): void {
  const path = '/servers/:id/protect';
  // Only the banner: it is asked for every five seconds.
  app.get(`${path}/attacks`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const open = await readOpenAttacks(deps, visitor.actor, subject);
    return sendPage(reply, attacksNow(server, open, deps.clock.nowMs()));
  });

  app.get(`${path}/incidents`, { schema: { params: Id, querystring: ListQuery } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const severity = request.query.severity === 'info' ? 'info' : 'attack';
    const after = readIncidentCursor(request.query.after);
    const query = { severity, after, limit: pageSize + 1 } as const;
    const found = await deps.protectIncidents.list(visitor.actor, subject, query);
    const incidents = found.slice(0, pageSize);
    const last = incidents.at(-1);
    const base = `/client/servers/${server.id}/protect/incidents`;
    const url = withQuery(base, { severity: severity === 'info' ? severity : undefined });
    const nextHref =
      found.length > pageSize && last ? withQuery(url, { after: writeIncidentCursor(last) }) : undefined;
    const isFirst = after === undefined;
    const nowMs = deps.clock.nowMs();
    return sendPage(
      reply,
      incidentsPage({ visitor, server, severity, incidents, url, isFirst, nextHref, nowMs }),
    );
  });

  app.get(`${path}/incidents/:incident`, { schema: { params: IncidentId } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const { incident: id } = request.params;
    const incident = uuid.test(id) ? await deps.protectIncidents.find(visitor.actor, subject, id) : null;
    if (incident === null) throw noSuchPage();
    return sendPage(reply, incidentPage({ visitor, server, incident, nowMs: deps.clock.nowMs() }));
  });

  app.get(`${path}/incidents.json`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, subject } = await findProtectedOf(deps, request);
    const [attacks, information] = await Promise.all(
      (['attack', 'info'] as const).map((severity) =>
        deps.protectIncidents.list(visitor.actor, subject, { severity, limit: listedMax }),
      ),
    );
    return reply.send({ incidents: attacks!.map(toWire), information: information!.map(toWire) });
  });
}

function toWire(incident: IncidentRow) {
  return {
    id: incident.id,
    class: incident.class,
    severity: incident.severity,
    direction: incident.direction,
    state: incident.state,
    started_at: incident.startedAt.toISOString(),
    detected_at: incident.detectedAt.toISOString(),
    last_observed_at: incident.lastObservedAt.toISOString(),
    recovered_at: incident.recoveredAt?.toISOString() ?? null,
    peak: {
      bps: incident.peakBps,
      bps_at: incident.peakBpsAt.toISOString(),
      pps: incident.peakPps,
      pps_at: incident.peakPpsAt.toISOString(),
    },
    address: incident.address,
    actions: actionsOf(incident),
  };
}
