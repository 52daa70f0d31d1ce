/** The traffic of all servers of the signed-in person: page, chart data and files, one view of filters and range. */

import type { Clock } from '#common/clock/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import {
  directionsOf,
  namesApplications,
  type ProtectSettingsFeature,
  type ProtectTraffic,
  passes,
  rankServers,
  type TrafficFilter,
  type UsageSubject,
} from '#operations/protect/index.ts';
import type { Server, Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type ChartData, chartJson, sendPage } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { type AllTrafficOptions, allLines, allTrafficPage } from './all-traffic.page.ts';
import { directionChartData, percentileLines, serversChartData } from './explored-chart.ts';
import type { ApplicationRank, ServerRank } from './rank-tables.ts';
import {
  type ApplicationView,
  rankByServer,
  readApplicationChart,
  readApplications,
} from './read-applications.ts';
import { ranksCsv } from './traffic.csv.ts';
import { type GivenTraffic, readAsk, type TrafficAsk, TrafficQuery } from './traffic-url.ts';

export interface AllTrafficDeps {
  servers: Servers;
  protectSettings: ProtectSettingsFeature;
  protectTraffic: ProtectTraffic;
  clock: Clock;
}

const schema = { querystring: TrafficQuery };
/** Servers that one view counts, newest first. */
const serversMax = 500;

export function registerAllTraffic(app: App, deps: AllTrafficDeps): void {
  app.get('/traffic/', { schema }, async (request, reply) =>
    sendPage(reply, allTrafficPage(await readAll(deps, request.visitor!, request.query))),
  );

  app.get('/traffic/chart.json', { schema }, async (request, reply) => {
    const { chartData } = await readAll(deps, request.visitor!, request.query);
    return reply.header('cache-control', 'no-store').send(chartJson('bit/s', chartData));
  });

  for (const name of ['servers', 'applications'] as const) {
    app.get(`/traffic/${name}.json`, { schema }, async (request, reply) => {
      const view = await readAll(deps, request.visitor!, request.query);
      return reply.header('cache-control', 'no-store').send({
        from: new Date(view.ask.range.fromMs).toISOString(),
        to: new Date(view.ask.range.toMs).toISOString(),
        [name]: rowsOf(view, name),
      });
    });
    app.get(`/traffic/${name}.csv`, { schema }, async (request, reply) => {
      const view = await readAll(deps, request.visitor!, request.query);
      return sendCsv(reply, `traffic-${name}.csv`, ranksCsv(rowsOf(view, name)));
    });
  }
}

function rowsOf({ servers, applications }: AllTrafficOptions, name: 'servers' | 'applications') {
  const bytes = (row: ServerRank | ApplicationRank) => ({
    inbound_bytes: row.inboundBytes,
    outbound_bytes: row.outboundBytes,
    previous_bytes: row.previousBytes,
  });
  if (name === 'applications')
    return applications.map((row) => ({ name: row.name, service: row.service, ...bytes(row) }));
  return servers.map((row) => ({
    ...{ server_id: row.serverId, name: row.value },
    ...bytes(row),
    ...{ inbound_p95_bps: row.inboundP95, outbound_p95_bps: row.outboundP95 },
  }));
}

async function readAll(
  deps: AllTrafficDeps,
  visitor: Visitor,
  query: GivenTraffic,
): Promise<AllTrafficOptions> {
  const { actor } = visitor;
  const ask = readAsk(query, deps.clock.nowMs(), { range: '1h', by: 'server', allowed: allLines });
  const all = await deps.servers.listServers(actor, null, { order: 'newest', limit: serversMax });
  const ids = all.map(({ id }) => id);
  const hidden = await deps.protectSettings.listHidden(actor, ids);
  const shown = all.filter((server) => !hidden.has(server.id) && isNamed(ask.filters, server));
  const names = new Map(shown.map(({ id, name }) => [id, name]));
  const nameOf = (id: number) => names.get(id) ?? String(id);
  const subject = { serverIds: [...names.keys()], addresses: addressesOf(ask, shown) };
  const usage = await deps.protectTraffic.readUsage(actor, subject, ask.range);
  const isPreviousObserved = (usage.total?.previousMinutes ?? 0) > 0;
  const view = { range: ask.range, filters: ask.filters, isPreviousObserved };
  const found = await readApplications(deps.protectTraffic, actor, subject, view);
  const seen = { nameOf, subject, found, usage };
  const servers = namesApplications(ask.filters)
    ? rankByServer(found, nameOf, view)
    : rankServers(usage.totals, nameOf, directionsOf(ask.filters)).map((row) => ({
        ...row,
        serverId: row.id!,
      }));
  return {
    ...{ visitor, ask, usage },
    servers: servers.filter((row) => row.inboundBytes + row.outboundBytes > 0),
    serverCount: shown.length,
    allCount: all.length,
    hiddenCount: hidden.size,
    chartData: await chartOf(deps, visitor, ask, seen),
    applications: found.applications,
    ports: found.ports,
    applicationsFromMs: found.isShorter ? found.use.fromMs : null,
  };
}

async function chartOf(
  deps: AllTrafficDeps,
  { actor }: Visitor,
  { range, filters, by }: TrafficAsk,
  seen: {
    nameOf: (id: number) => string;
    subject: UsageSubject;
    found: ApplicationView;
    usage: AllTrafficOptions['usage'];
  },
): Promise<ChartData> {
  const { usage, subject, found, nameOf } = seen;
  const directions = directionsOf(filters);
  if (namesApplications(filters) || by === 'app' || by === 'port') {
    const view = { range, filters, by, observed: usage.steps, found, serverName: nameOf };
    return readApplicationChart(deps.protectTraffic, actor, subject, view);
  }
  if (by === 'direction')
    return {
      ...directionChartData(usage.steps, range, directions),
      lines: percentileLines(usage.total, directions),
    };
  const steps = await deps.protectTraffic.readServerSteps(actor, subject, range);
  const order = rankServers(usage.totals, nameOf, directions).map((row) => row.id!);
  return serversChartData(
    { times: usage.steps.map((step) => step.at), steps, order, nameOf, directions },
    range,
  );
}

/** Whether a server passes the filters that name servers, by name or by id. */
function isNamed(filters: readonly TrafficFilter[], { id, name }: Server): boolean {
  return passes(
    filters,
    'server',
    (value) => value.toLowerCase() === name.toLowerCase() || value === String(id),
  );
}

/** Null for all; an address that none of the servers has finds nothing. */
function addressesOf({ address, filters }: TrafficAsk, servers: readonly Server[]): string[] | null {
  const isAsked = filters.some(({ dimension }) => dimension === 'address');
  if (address === null && !isAsked) return null;
  const known = servers.flatMap((server) => server.addresses.map((each) => each.address));
  return known.filter(
    (each) =>
      (address === null || each === address) &&
      passes(filters, 'address', (value) => (canonicalAddress(value) ?? value) === each),
  );
}
