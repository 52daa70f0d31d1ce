/** From filters to servers and addresses, and from ids to the names that stand in tables and filters. */
import { type Filter, passes } from '#service-kit/explorer/index.ts';
import { customerValues, serverNamer } from './exploration.ts';
import type { ExplorerScope, TrafficServer } from './explorer-store.ts';

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

export interface Name {
  /** As a filter takes it. */
  value: string;
  label: string;
  serverId: number | null;
  tenantId: number | null;
}

export interface Names {
  of(dimension: ServerDimension, serverId: number): Name;
  /** The value of `of` alone: what servers are grouped by. */
  filterValueOf(dimension: ServerDimension, serverId: number): string;
  server(serverId: number): TrafficServer | undefined;
}

/** Names of servers that an actor reaches. Which of them mean several is found out when the first is asked for. */
export function createNames(servers: readonly TrafficServer[]): Names {
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
  return {
    filterValueOf,
    server: (serverId) => byId.get(serverId),
    of(dimension, serverId) {
      const server = byId.get(serverId);
      const tenantId = server?.tenantId ?? null;
      const value = filterValueOf(dimension, serverId);
      switch (dimension) {
        case 'server': {
          const label = server?.name ?? `server ${serverId}`;
          return { value, label: server?.isDestroyed ? `${label} (destroyed)` : label, serverId, tenantId };
        }
        case 'customer':
          return { value, label: server?.tenantName ?? 'unknown', serverId: null, tenantId };
        default:
          return { value, label: value, serverId: null, tenantId: null };
      }
    },
  };
}
