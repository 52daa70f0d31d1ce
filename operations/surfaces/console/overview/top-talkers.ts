/** The servers with the most traffic in the last hour, on the overview. */
import type { Tenant } from '#operations/accounts/index.ts';
import { bytesOf, type UsageTotal } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/index.ts';
import { exploreHref } from '#service-kit/explorer/index.ts';
import { type Column, formatBytes, type Html, link, section, table } from '#service-kit/pages/index.ts';
import { trafficPath } from '../traffic/traffic-link.ts';
import { type ListTraffic, serverTrafficColumns } from '../traffic-columns.ts';

/** Rows of the table. */
export const talkersMax = 5;

export interface TopTalkers {
  servers: readonly Server[];
  tenants: readonly Tenant[];
  traffic: ListTraffic;
}

/** Ids of the servers with the most bytes, most first. */
export function mostTraffic(totals: ReadonlyMap<number, UsageTotal>): number[] {
  return [...totals.values()]
    .filter((total) => bytesOf(total) > 0)
    .sort((a, b) => bytesOf(b) - bytesOf(a))
    .slice(0, talkersMax)
    .map((total) => total.id!);
}

export function talkersSection({ servers, tenants, traffic }: TopTalkers, nowMs: number): Html {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const bytes = (key: 'inboundBytes' | 'outboundBytes', header: string): Column<Server> => ({
    key,
    header,
    kind: 'figure',
    cell: (server) => formatBytes(traffic.totals.get(server.id)?.[key]),
  });
  return section(
    {
      title: 'Most traffic in the last hour',
      id: 'top-talkers',
      actions: link(exploreHref(trafficPath, {}, { range: '1h' }), 'Explore traffic', { kind: 'button' }),
    },
    table<Server>({
      caption: 'Servers with the most traffic',
      card: { line: ['customer', 'in', 'out'] },
      columns: [
        {
          key: 'server',
          header: 'Server',
          cell: (server) => link(`/console/servers/${server.id}`, server.name),
        },
        {
          key: 'customer',
          header: 'Customer',
          cell: (server) =>
            link(`/console/customers/${server.tenantId}`, names.get(server.tenantId) ?? 'unknown'),
        },
        bytes('inboundBytes', 'In, 24 h'),
        bytes('outboundBytes', 'Out, 24 h'),
        ...serverTrafficColumns<Server>(traffic, (server) => server.id, nowMs),
      ],
      rows: servers,
      empty: { title: 'No traffic', text: 'Servers with observed traffic appear here.' },
    }),
  );
}
