/** From filters to servers and addresses, and from ids to the names that stand in tables and filters. */
import { canonicalAddress } from '#common/ip/index.ts';
import { customerValues, serverValues } from './exploration.ts';
import type { ExplorerScope, TrafficServer } from './explorer-store.ts';
import { passes, type TrafficFilter } from './filter.ts';

/** Whether a server passes the filters on servers, customers, nodes and clusters, by name or by id. */
export function passesServer(filters: readonly TrafficFilter[], server: TrafficServer): boolean {
  const named = (name: string, id: number) => (value: string) =>
    value.toLowerCase() === name.toLowerCase() || value === String(id);
  const same = (name: string | null) => (value: string) =>
    value.toLowerCase() === (name ?? 'none').toLowerCase();
  return (
    passes(filters, 'server', named(server.name, server.id)) &&
    passes(filters, 'customer', named(server.tenantName, server.tenantId)) &&
    passes(filters, 'node', same(server.node)) &&
    passes(filters, 'cluster', same(server.clusterName))
  );
}

/** The filters on addresses, which may be networks. */
export function addressFilters(filters: readonly TrafficFilter[]): ExplorerScope['addresses'] {
  return filters
    .filter(({ dimension }) => dimension === 'address')
    .map(({ isNot, values }) => ({
      isNot,
      values: values.map((value) => (value.includes('/') ? value : (canonicalAddress(value) ?? value))),
    }));
}

/** A dimension that a server has one value of. */
export type ServerDimension = 'server' | 'customer' | 'node' | 'cluster';

export interface Name {
  /** As a filter takes it. */
  value: string;
  label: string;
  serverId: number | null;
  tenantId: number | null;
}

export interface Names {
  of(dimension: ServerDimension, serverId: number): Name;
  server(serverId: number): TrafficServer | undefined;
}

/** Names of servers that an actor reaches. */
export function createNames(servers: readonly TrafficServer[]): Names {
  const byId = new Map(servers.map((server) => [server.id, server]));
  const [values, customers] = [serverValues(servers), customerValues(servers)];
  return {
    server: (serverId) => byId.get(serverId),
    of(dimension, serverId) {
      const server = byId.get(serverId);
      const tenantId = server?.tenantId ?? null;
      switch (dimension) {
        case 'server': {
          const label = server?.name ?? `server ${serverId}`;
          const value = values.get(serverId) ?? String(serverId);
          return { value, label: server?.isDestroyed ? `${label} (destroyed)` : label, serverId, tenantId };
        }
        case 'customer': {
          const value = tenantId === null ? 'unknown' : customers.get(tenantId)!;
          return { value, label: server?.tenantName ?? 'unknown', serverId: null, tenantId };
        }
        default: {
          const value = (dimension === 'node' ? server?.node : server?.clusterName) ?? 'none';
          return { value, label: value, serverId: null, tenantId: null };
        }
      }
    },
  };
}
