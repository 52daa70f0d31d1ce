/** Ports of a server: `ports.json`, the button that requests a scan, and what one requested scan found. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import {
  type ObservedPort,
  type ProtectScans,
  requestLimits,
  type ServerPorts,
  type ServerScan,
} from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chosenOf, formatTime, sendPage, type Tone, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { findProtectedOf, type ProtectGuardDeps } from './guard-protect.ts';
import { scanPage } from './scan.page.ts';

interface PortPagesDeps extends ProtectGuardDeps {
  protectScans: Pick<ProtectScans, 'read' | 'request' | 'readResult'>;
}

const Id = Type.Object({ id: Type.String() });
const ScanId = Type.Object({ id: Type.String(), scan: Type.String() });
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What the page says after a click. A refusal is a word in the URL, so that the answer can always be a 303. */
const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  requested: { tone: 'good', text: 'Port scan requested.' },
  pending: { tone: 'info', text: 'A port scan of this server is requested already.' },
  not_running: { tone: 'bad', text: 'The server is not running. Start it, then request the scan again.' },
  no_address: { tone: 'bad', text: 'The server has no public address to scan.' },
  too_many_addresses: {
    tone: 'bad',
    text: 'The server has more than 32 public addresses, which is the limit of one request. Nothing was requested.',
  },
  limit_exceeded: {
    tone: 'bad',
    text: 'The account would have more than 100 addresses waiting for a scan. Try again when some are done.',
  },
};

/** The toast of a page that a click led to. The end of a cooldown is that of the latest request on the page. */
export function toastOf(outcome: string | undefined, { scans, nowMs }: Pick<ServerPorts, 'scans' | 'nowMs'>) {
  if (outcome === 'cooldown') {
    const endMs = cooldownEndMs(scans);
    return endMs <= nowMs
      ? undefined
      : {
          tone: 'bad' as const,
          text: `No scan can be requested until ${formatTime(endMs)}: one was requested less than 10 minutes ago.`,
        };
  }
  return chosenOf(outcomes, outcome);
}

const cooldownEndMs = (scans: readonly ServerScan[]): number =>
  Math.max(
    0,
    ...scans.map(({ kind, requestedAt }) => (kind === 'manual' ? (requestedAt?.getTime() ?? 0) : 0)),
  ) +
  requestLimits.cooldownSeconds * 1000;

export function registerPorts(app: App, deps: PortPagesDeps): void {
  const path = '/servers/:id/protect';

  app.post(`${path}/scan`, { schema: { params: Id } }, async (request, reply) => {
    const outcome = await requestScan(deps, request);
    return reply.redirect(withQuery(`/client/servers/${request.params.id}/protect`, { scan: outcome }), 303);
  });

  app.get(`${path}/ports.json`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, subject } = await findProtectedOf(deps, request);
    const { open, closed, scans } = await deps.protectScans.read(visitor.actor, subject);
    return reply.send({
      ports: open.map(portToWire),
      closed: closed.map(closedToWire),
      scans: scans.map(scanToWire),
    });
  });

  app.get(`${path}/scans/:scan`, { schema: { params: ScanId } }, async (request, reply) => {
    const { visitor, server, subject } = await findProtectedOf(deps, request);
    const { scan: id } = request.params;
    const found = uuid.test(id) ? await deps.protectScans.readResult(visitor.actor, subject, id) : null;
    if (found === null) throw noSuchPage();
    return sendPage(reply, scanPage({ visitor, server, ...found }));
  });
}

async function requestScan(
  deps: PortPagesDeps,
  request: FastifyRequest<{ Params: { id: string } }>,
): Promise<string> {
  const { visitor, server } = await findProtectedOf(deps, request);
  try {
    const { isNew } = await deps.protectScans.request(visitor.actor, server.id);
    return isNew ? 'requested' : 'pending';
  } catch (error) {
    const [feature, reason] = error instanceof CodedError ? error.code.split('.') : [];
    if (feature !== 'port_scans' || reason === undefined) throw error;
    if (reason !== 'cooldown' && !Object.hasOwn(outcomes, reason)) throw noSuchPage();
    return reason;
  }
}

function portToWire(row: ObservedPort) {
  return {
    address: row.address,
    transport: row.transport,
    port: row.port,
    service: row.answer.service,
    product: row.answer.product,
    version: row.answer.version,
    state: row.state,
    first_observed_at: row.firstObservedAt.toISOString(),
    observed_at: row.observedAt.toISOString(),
    identified_at: row.identifiedAt?.toISOString() ?? null,
    profile: row.profile,
    freshness: row.freshness,
  };
}

const closedToWire = (row: ObservedPort) => ({
  ...portToWire(row),
  closed_at: row.closedAt?.toISOString() ?? null,
});

function scanToWire(scan: ServerScan) {
  return {
    id: scan.id,
    address: scan.address,
    kind: scan.kind,
    state: scan.state,
    requested_at: scan.requestedAt?.toISOString() ?? null,
    started_at: scan.startedAt?.toISOString() ?? null,
    finished_at: scan.finishedAt?.toISOString() ?? null,
  };
}
