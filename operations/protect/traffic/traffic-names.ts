/** From filters to servers and addresses, and from ids to the names that stand in tables and filters. */
import type { TrafficServer } from '#operations/views/traffic-server-store.ts';
import { type Filter, passes, type RowDetails, type Value } from '#service-kit/explorer/index.ts';
import type { ExplorerScope } from './explorer-store.ts';

/** Dimensions that a server has one value of. */
const serverDimensions = ['server', 'customer', 'node', 'cluster'] as const;
export type ServerDimension = (typeof serverDimensions)[number];

/** Servers that pass the filters on servers, customers, nodes and clusters, by name or by id. */
export function passingServers(
  filters: readonly Filter[],
  servers: readonly TrafficServer[],
): readonly TrafficServer[] {
  const ofServers = filters.filter(({ dimension }) => serverDimensions.some((one) => one === dimension));
  return ofServers.length === 0 ? servers : servers.filter((server) => passesServer(ofServers, server));
}

function passesServer(filters: readonly Filter[], server: TrafficServer): boolean {
  const named = (name: string, id: number) => (value: string) =>
    value.toLowerCase() === name.toLowerCase() || value === String(id);
  const same = (name: string | null) => (value: string) =>
    value.toLowerCase() === (name ?? 'none').toLowerCase();
  return (
    passes(
      filters,
      'server',
      (value) => named(server.name, server.id)(value) || value === `${server.clusterId}/${server.id}`,
    ) &&
    passes(filters, 'customer', named(server.tenantName, server.tenantId)) &&
    passes(filters, 'node', same(server.node)) &&
    passes(filters, 'cluster', same(server.clusterName))
  );
}

/** The filters on addresses, which may be networks. */
export function addressFilters(filters: readonly Filter[]): ExplorerScope['addresses'] {
  return filters
    .filter(({ dimension }) => dimension === 'address')
    .map(({ is, values }) => ({ isNot: !is, values }));
}

/** A name by which it is filtered is a number where the name alone means several, or looks like one. */
const filterValue = (id: number, name: string, isAlone: boolean) =>
  isAlone && !/^\d+$/.test(name) ? name : String(id);

/** How often each name is there, in any case of its letters; each thing counts once. */
function countNames(names: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) {
    const key = name.toLowerCase();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

type NamedServer = Pick<TrafficServer, 'id' | 'name'>;

/** The name by which a server of these is filtered: with its number where the name alone means several. */
export function serverNamer(servers: readonly NamedServer[]): (server: NamedServer) => string {
  const counts = countNames(servers.map(({ name }) => name));
  return ({ id, name }) => filterValue(id, name, counts.get(name.toLowerCase()) === 1);
}

/** The same of customers. */
function customerValues(servers: readonly TrafficServer[]): Map<number, string> {
  const names = new Map<number, string>();
  for (const { tenantId, tenantName } of servers) names.set(tenantId, tenantName);
  const counts = countNames(names.values());
  const values = new Map<number, string>();
  for (const [id, name] of names) values.set(id, filterValue(id, name, counts.get(name.toLowerCase()) === 1));
  return values;
}

/** What stands in a row: its value, as a filter takes it, and whose it is. */
type Name = Value & RowDetails;

/** Of a row, where nothing else is known. */
export const noDetails: RowDetails = {
  ...{ service: null, serverId: null, customerId: null },
  ...{ lastSentMs: null, percentile95In: null, percentile95Out: null },
};

export type Names = ReturnType<typeof createNames>;

/** Names of servers that an actor reaches. Which of them mean several is found out when the first is asked for. */
export function createNames(servers: readonly TrafficServer[]) {
  const byId = new Map(servers.map((server) => [server.id, server]));
  let nameServer: ReturnType<typeof serverNamer> | null = null;
  let customers: Map<number, string> | null = null;
  const filterValueOf = (dimension: ServerDimension, serverId: number): string => {
    const server = byId.get(serverId);
    switch (dimension) {
      case 'server':
        if (server === undefined) return String(serverId);
        nameServer ??= serverNamer(servers);
        return nameServer(server);
      case 'customer':
        if (server === undefined) return 'unknown';
        customers ??= customerValues(servers);
        return customers.get(server.tenantId)!;
      default:
        return (dimension === 'node' ? server?.node : server?.clusterName) ?? 'none';
    }
  };
  const customerOf = (serverId: number) => byId.get(serverId)?.tenantId ?? null;
  return {
    /** The value of `of` alone: what servers are grouped by. */
    filterValueOf,
    of(dimension: ServerDimension, serverId: number): Name {
      const server = byId.get(serverId);
      const value = filterValueOf(dimension, serverId);
      switch (dimension) {
        case 'server': {
          const name = server?.name ?? `server ${serverId}`;
          const label = server?.isDestroyed ? `${name} (destroyed)` : name;
          return { ...noDetails, value, label, serverId, customerId: customerOf(serverId) };
        }
        case 'customer': {
          const label = server?.tenantName ?? 'unknown';
          return { ...noDetails, value, label, customerId: customerOf(serverId) };
        }
        default:
          return { ...noDetails, value, label: value };
      }
    },
    ofAddress: ({ address, serverId }: { address: string; serverId: number }): Name => ({
      ...{ ...noDetails, value: address, label: address, serverId, customerId: customerOf(serverId) },
    }),
  };
}
