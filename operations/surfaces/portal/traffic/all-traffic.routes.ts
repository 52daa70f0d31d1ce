/** The traffic of all servers of the signed-in person: the explorer, and its rows as files for programs. */
import type { FastifyRequest } from 'fastify';
import { customerBox, type RankedValue } from '#operations/protect/index.ts';
import { parseFilters, sizeOf } from '#service-kit/explorer/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { withQuery } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import {
  type ExplorerDeps,
  type ExplorerSurface,
  readTrafficRange,
  registerExplorer,
} from '../../parts/index.ts';
import { portalFrame } from '../frame.ts';
import { eventHref } from './server-flags.ts';
import { ranksCsv } from './traffic.csv.ts';
import { TrafficQuery, trafficPath } from './traffic-url.ts';

export const allTrafficPath = '/client/traffic/';
/** Rows of a file. */
const rowsMax = 10_000;

const place: ExplorerSurface = {
  ...{ path: allTrafficPath, files: allTrafficPath },
  box: customerBox,
  defaultRange: '1h',
  deploy: { label: 'Deploy a server', href: '/client/servers/new' },
  example: 'server:web-1 port:443 -app:github.com',
  flowColumns: ['server', 'application'],
  ownScans: 'port scans by your provider',
  whoOf: (request) => ({ ...request.visitor!, canSave: true, canShare: false }),
  frame: (request, title, text, content) =>
    portalFrame(
      {
        visitor: request.visitor!,
        title,
        current: 'traffic',
        breadcrumb: [{ label: title }],
        ...(text === null ? {} : { toast: { tone: 'good', text } }),
      },
      content,
    ),
  eventHref,
  hrefOf: ({ serverId }, range) => (serverId === null ? null : withQuery(trafficPath(serverId), { range })),
};

export function registerAllTraffic(app: App, deps: ExplorerDeps): void {
  registerExplorer(app, deps, place, '/client');
  const schema = { querystring: TrafficQuery };
  for (const name of ['servers', 'applications'] as const) {
    app.get(`/traffic/${name}.json`, { schema }, async (request, reply) => {
      const { range, rows } = await readRows(deps, request, name);
      return reply.send({
        from: new Date(range.fromMs).toISOString(),
        to: new Date(range.toMs).toISOString(),
        [name]: rows,
      });
    });
    app.get(`/traffic/${name}.csv`, { schema }, async (request, reply) => {
      const { rows } = await readRows(deps, request, name);
      return sendCsv(reply, `traffic-${name}.csv`, ranksCsv(rows));
    });
  }
}

async function readRows(
  { protectTraffic, clock }: ExplorerDeps,
  request: FastifyRequest<{ Querystring: Partial<Record<string, string>> }>,
  name: 'servers' | 'applications',
) {
  const range = readTrafficRange(request.query, clock.nowMs(), '1h');
  const { q = '', address } = request.query;
  const only = address ? parseFilters(`address:"${address}"`, customerBox).filters : [];
  const ask = { ...range, filters: [...parseFilters(q, customerBox).filters, ...only] };
  const explored = await protectTraffic.explore(request.visitor!.actor, ask);
  const dimension = name === 'servers' ? 'server' : 'service';
  const ranking = await explored.rank(dimension, { limit: rowsMax, hasPercentiles: true });
  const toRow: (row: RankedValue) => Record<string, string | number | null> =
    name === 'servers' ? serverRow : applicationRow;
  return { range, rows: ranking.rows.map(toRow) };
}

const bytesOf = (row: RankedValue) => ({
  inbound_bytes: row.inboundBytes,
  outbound_bytes: row.outboundBytes,
  previous_bytes: row.previous && sizeOf(row.previous, 'bytes'),
});

const serverRow = (row: RankedValue) => ({
  ...{ server_id: row.serverId, name: row.label },
  ...bytesOf(row),
  ...{ inbound_p95_bps: row.inboundP95, outbound_p95_bps: row.outboundP95 },
});

const applicationRow = (row: RankedValue) => ({ name: row.label, service: row.service, ...bytesOf(row) });
