/** The Live range of the Traffic tab: its page, the data of its chart, and the buckets for programs. */
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type { LiveRow, ProtectIncidents, ProtectLive } from '#operations/protect/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { chartJson, type Html } from '#service-kit/pages/index.ts';
import { findProtectedOf, type ProtectedServer, type ProtectGuardDeps } from '../protect/guard-protect.ts';
import { bucketMs, type LiveView, liveChartData, livePage } from './live.page.ts';
import { readOffTimes } from './off-times.ts';
import { readServerFlags } from './server-flags.ts';

export interface LivePagesDeps extends ProtectGuardDeps {
  protectIncidents: Pick<ProtectIncidents, 'list'>;
  protectLive: ProtectLive;
  serverHistory: ServerHistory;
  clock: Clock;
}

const schema = {
  params: Type.Object({ id: Type.String() }),
  querystring: Type.Object({ address: Type.Optional(Type.String({ maxLength: 64 })) }),
};
/** Buckets that the chart shows. */
const shownMs = 600_000;
/** Attacks that a chart marks. */
const attacksMax = 20;

export function registerLive(app: App, deps: LivePagesDeps): void {
  // Programs know them under `/protect/`, where they were first.
  for (const path of ['/servers/:id/traffic', '/servers/:id/protect']) {
    app.get(`${path}/live.json`, { schema }, async (request, reply) => {
      const found = await findProtectedOf(deps, request);
      const { rows } = await readLive(deps, found, request.query.address);
      return reply.send({ buckets: rows.map(toWire) });
    });

    app.get(`${path}/live-chart.json`, { schema }, async (request, reply) => {
      const found = await findProtectedOf(deps, request);
      const view = await readLive(deps, found, request.query.address);
      return reply.send(chartJson('bit/s', liveChartData(view)));
    });
  }
}

/** The page of the Live range. */
export async function readLivePage(
  deps: LivePagesDeps,
  found: ProtectedServer,
  address: string | undefined,
): Promise<Html> {
  return livePage(found, await readLive(deps, found, address));
}

export async function readLive(
  deps: LivePagesDeps,
  { visitor, server, subject }: ProtectedServer,
  wanted: string | undefined,
): Promise<LiveView> {
  const nowMs = deps.clock.nowMs();
  const toMs = Math.floor(nowMs / bucketMs) * bucketMs;
  const fromMs = toMs - shownMs;
  const address = wanted ? (canonicalAddress(wanted) ?? wanted) : null;
  const of = { ...subject, address };
  const [rows, status, attacks, { flags }, off] = await Promise.all([
    deps.protectLive.read(visitor.actor, of, fromMs),
    deps.protectLive.readStatus(visitor.actor, of),
    deps.protectIncidents.list(visitor.actor, subject, { severity: 'attack', limit: attacksMax }),
    // Up to now: the bucket that goes on has no bar yet.
    readServerFlags(deps, { visitor, server, range: { fromMs, toMs: nowMs }, address }),
    readOffTimes(deps, { visitor, server }, nowMs),
  ]);
  const createdMs = server.createdAt.getTime();
  return { rows, status, attacks, flags, createdMs, off, address, fromMs, toMs, nowMs };
}

function toWire(row: LiveRow) {
  return {
    timestamp: row.startedAt.toISOString(),
    address: row.address,
    inbound_bps: row.inboundBps,
    outbound_bps: row.outboundBps,
    pps: row.pps,
    coverage: row.coverage,
    observed_seconds: row.observedSeconds,
  };
}
