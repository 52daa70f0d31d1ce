/**
 * What the Traffic page shows as exact values for programs, and the data of its chart. The same files are under
 * `/protect/` as well, where they were before the page had a tab of its own.
 */
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import type { MinuteRow } from '#operations/protect/index.ts';
import { chartUnit } from '#service-kit/explorer/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { chartJson, tableCsv } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import { readExplorerChart } from '../../parts/index.ts';
import { findProtectedOf } from '../protect/guard-protect.ts';
import { serverChart, serverPlace } from './server-explorer.ts';
import { readAround, readServerAsk, type TrafficRequest } from './traffic.routes.ts';
import { TrafficQuery } from './traffic-url.ts';

const schema = { params: Type.Object({ id: Type.String() }), querystring: TrafficQuery };

export function registerTrafficFiles(app: App, deps: Features): void {
  for (const path of ['/servers/:id/traffic', '/servers/:id/protect']) {
    app.get(`${path}/chart.json`, { schema }, async (request, reply) =>
      reply.send(await readChart(deps, request)),
    );

    app.get(`${path}/minutes.json`, { schema }, async (request, reply) => {
      const { server, range, minutes } = await readExactMinutes(deps, request);
      return reply.send({
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
  }
}

async function readChart(deps: Features, request: TrafficRequest): Promise<Record<string, unknown>> {
  const found = await findProtectedOf(deps, request);
  const asked = readServerAsk(deps, request);
  const { visitor, server } = found;
  const subject = { ...found.subject, address: asked.address };
  const [steps, read] = await Promise.all([
    deps.protectTraffic.readSteps(visitor.actor, subject, asked.range),
    readExplorerChart(deps, serverPlace(server, asked.address), request),
  ]);
  const around = await readAround(deps, found, asked, steps);
  return chartJson(chartUnit(read.chart.answer), serverChart(read, around));
}

async function readExactMinutes(deps: Features, request: TrafficRequest) {
  const { visitor, server, subject } = await findProtectedOf(deps, request);
  const { range, address } = readServerAsk(deps, request);
  if (range.error !== undefined) throw unusableRange(range.error);
  try {
    const of = { ...subject, address };
    return { server, range, minutes: await deps.protectTraffic.readMinutes(visitor.actor, of, range) };
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
    provider_scan_inbound_bytes: row.ownScanInboundBytes,
    provider_scan_outbound_bytes: row.ownScanOutboundBytes,
    dropped_inbound_bytes: row.droppedInboundBytes,
    dropped_outbound_bytes: row.droppedOutboundBytes,
    dropped_inbound_packets: row.droppedInboundPackets,
    dropped_outbound_packets: row.droppedOutboundPackets,
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

/** Exact values; an empty cell was not observed. */
function minutesCsv(minutes: readonly MinuteRow[]): string {
  return tableCsv(
    [
      { field: 'timestamp', value: (row) => row.minute.toISOString() },
      { field: 'address', value: (row) => row.address },
      { field: 'inbound_bytes', value: (row) => row.inboundBytes },
      { field: 'outbound_bytes', value: (row) => row.outboundBytes },
      { field: 'packets_per_second', value: (row) => row.pps },
      { field: 'coverage', value: (row) => row.coverage },
      { field: 'expected_bps', value: (row) => row.expectedBps },
      { field: 'expected_pps', value: (row) => row.expectedPps },
      { field: 'attack_bps', value: (row) => row.ddosBps },
      { field: 'attack_pps', value: (row) => row.ddosPps },
      { field: 'reason', value: (row) => row.reason },
      { field: 'provider_scan_inbound_bytes', value: (row) => row.ownScanInboundBytes },
      { field: 'provider_scan_outbound_bytes', value: (row) => row.ownScanOutboundBytes },
      { field: 'dropped_inbound_bytes', value: (row) => row.droppedInboundBytes },
      { field: 'dropped_outbound_bytes', value: (row) => row.droppedOutboundBytes },
      { field: 'dropped_inbound_packets', value: (row) => row.droppedInboundPackets },
      { field: 'dropped_outbound_packets', value: (row) => row.droppedOutboundPackets },
    ],
    minutes,
  );
}
