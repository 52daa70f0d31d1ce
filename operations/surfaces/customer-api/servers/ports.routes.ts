import type { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { ObservedPort, ServerScan } from '#operations/protect/index.ts';
import type { Handlers } from '../call.ts';
import { readSelection } from '../request-parts.ts';
import { findProtected } from './incidents.routes.ts';

/** Open ports of a server and the request of a scan; a 404 while its protection views are off (NET-1.6). */
export function portHandlers(deps: Features) {
  const { protectScans } = deps;
  return {
    async listServerPorts(call, request) {
      const subject = await findProtected(deps, call, request);
      const { open, closed, scans, fullScanAt } = await protectScans.read(call.actor, subject);
      return {
        ports: open.map(showPort),
        closed: closed.map(showPort),
        scans: scans.map((scan) => showScan(scan, subject.serverId)),
        last_full_scan_at: fullScanAt?.toISOString() ?? null,
      };
    },

    async scanServerPorts(call, request, reply) {
      const subject = await findProtected(deps, call, request);
      readSelection(call, request);
      // The same operation and limits as the button of the portal; a key is no ambient credential, so no CSRF token.
      const { requests, isNew } = await protectScans.request(call.actor, subject.serverId);
      const { scans } = await protectScans.read(call.actor, subject);
      const ids = new Set(requests.map(({ id }) => id));
      reply.code(isNew ? 202 : 200);
      return { scans: scans.filter(({ id }) => ids.has(id)).map((scan) => showScan(scan, subject.serverId)) };
    },
  } satisfies Handlers;
}

function showPort(row: ObservedPort): schemas.Port {
  const { service, product, version, method, confidence } = row.answer;
  return {
    ...{ address: row.address, transport: row.transport, port: row.port, state: row.state },
    ...{ service, product, version, method, confidence },
    first_observed_at: row.firstObservedAt.toISOString(),
    observed_at: row.observedAt.toISOString(),
    identified_at: row.identifiedAt?.toISOString() ?? null,
    closed_at: row.closedAt?.toISOString() ?? null,
    profile: row.profile,
    freshness: row.freshness,
  };
}

function showScan(scan: ServerScan, serverId: number): schemas.PortScan {
  return {
    id: scan.id,
    server_id: serverId,
    address: scan.address,
    kind: scan.kind,
    profile: scan.profile,
    state: scan.state,
    overdue: scan.isOverdue,
    progress: scan.progress,
    requested_at: scan.requestedAt?.toISOString() ?? null,
    expires_at: scan.expiresAt?.toISOString() ?? null,
    started_at: scan.startedAt?.toISOString() ?? null,
    finished_at: scan.finishedAt?.toISOString() ?? null,
  };
}
