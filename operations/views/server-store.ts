/** Servers: one with everything that its view shows, its owner, the inventory, and parts of other statements. */
import { type RawBuilder, sql } from 'kysely';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { Attachment } from './network-store.ts';
import type { Scope } from './scope.ts';

/** A moment as RFC 3339 text. */
export const rfc3339 = (column: string) =>
  `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The columns of an action, by the names of `ServerAction`: a statement also reads them as JSON, which keeps its keys. */
export const actionFields = `
  id, server_id as "serverId", command, status, progress, changed, outcome, error,
  requested_by_key as "requestedByKey",
  (select case when p.staff_role is null then p.name else 'Support' end from people p where p.id = requested_by_person_id)
    as "requestedByPerson", ${rfc3339('created_at')} as "createdAt", ${rfc3339('started_at')} as "startedAt",
  ${rfc3339('finished_at')} as "finishedAt"`;

/** True for the interface `a` of the server `s` where nothing else leads to it: one that is being attached may fail yet. */
export const isLastInterface = `not s.has_public_ip and a.state <> 'detaching' and not exists (
    select 1 from network_attachments o where o.server_id = s.id and o.id <> a.id and o.state = 'attached')`;

/** Plan `p`, image `i`, cluster `c` and location `l` of the server `s`. */
const catalogJoins = `
  join plans p on p.id = s.plan_id
  join images i on i.id = s.image_id
  join clusters c on c.id = s.cluster_id
  join locations l on l.id = c.location_id`;

const catalogFields = `
  p.id as plan_id, p.slug as plan_slug, p.name as plan_name, p.vcpus, p.memory_mb,
  coalesce(s.disk_gb, p.disk_gb) as disk_gb, i.id as image_id, i.slug as image_slug, i.name as image_name, i.family as image_family,
  c.id as cluster_id, c.name as cluster_name, c.driver, l.id as location_id, l.slug as location_slug, l.name as location_name, l.country`;

const ownFields = `
  s.id, s.tenant_id, s.order_id, s.name, s.hostname, s.provisioning_state, s.power_state, s.failure, s.labels, s.node,
  s.hourly_quanta, s.monthly_cap_quanta, s.created_at, s.provisioned_at, s.status_changed_at, s.updated_at,
  s.has_public_ip, s.machine_version, s.is_rescued,
  (select json_build_object('id', o.id, 'slug', o.slug, 'name', o.name) from images o where o.id = s.iso_id) as iso`;

// What a server has several of, or none, as JSON. Each is asked for once for all servers of a page, by their ids: asked for server by
// server it takes PostgreSQL twice as long.
const ofPage = 'server_id = any(array(select id from page))';

/** The primary one first. */
const addresses = `
  select a.server_id, json_agg(json_build_object('address', host(a.address), 'family', family(a.address),
      'prefixLength', a.prefix_length, 'gateway', host(a.gateway), 'isPrimary', a.is_primary,
      'reverseDns', a.reverse_dns) order by a.is_primary desc, a.id) as found
  from allocations a where a.${ofPage} and a.released_at is null group by a.server_id`;

const privateNetworks = `
  select a.server_id, json_agg(json_build_object('serverId', a.server_id, 'networkId', a.network_id, 'name', n.name,
      'cidr', n.cidr::text, 'ip', host(a.ip), 'macAddress', a.mac_address, 'state', a.state, 'error', a.error,
      'isLastInterface', ${isLastInterface},
      'requiresReboot', a.requires_reboot, 'attachedAt', ${rfc3339('a.attached_at')}) order by a.id) as found
  from network_attachments a join private_networks n on n.id = a.network_id join servers s on s.id = a.server_id
  where a.${ofPage} group by a.server_id`;

const firewalls = `
  select f.server_id, json_build_object('isEnabled', f.enabled, 'status', f.status,
    'ruleCount', (select count(*) from firewall_rules r where r.server_id = f.server_id)) as found
  from firewalls f where f.${ofPage}`;

/** Actions under way; a server has at most one. */
const currentActions = `
  select x."serverId" as server_id, row_to_json(x) as found from (select ${actionFields} from server_actions
    where ${ofPage} and status in ('queued', 'running')) x`;

const parts = `
  select page.*, coalesce(a.found, '[]') as addresses, coalesce(n.found, '[]') as private_networks,
    f.found as firewall, x.found as current_action
  from page
  left join (${addresses}) a on a.server_id = page.id
  left join (${privateNetworks}) n on n.server_id = page.id
  left join (${firewalls}) f on f.server_id = page.id
  left join (${currentActions}) x on x.server_id = page.id`;

/**
 * Servers with everything that their view shows, in one statement: the read that customers make most costs one round trip.
 * `which` says which servers `s` they are; `order` is in the columns of `Server`.
 */
export function serversWhere(
  which: RawBuilder<unknown>,
  { order = '', limit = sql`` }: { order?: string; limit?: RawBuilder<unknown> } = {},
): RawBuilder<Server> {
  const [columns, last] = [
    `select ${ownFields}, ${catalogFields} from servers s ${catalogJoins}`,
    sql.raw(order),
  ];
  return sql`with page as materialized (${sql.raw(columns)} where ${which} ${last} ${limit}) ${sql.raw(parts)} ${last}`;
}

export async function findServer(db: Queryable, scope: Scope, serverId: number): Promise<Server | null> {
  const ofOwner = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const which = sql`s.id = ${serverId} and ${ofOwner} and s.provisioning_state <> 'deleted'`;
  return (await serversWhere(which).execute(db)).rows[0] ?? null;
}

/** Those of these servers that live and are of the tenant in which they are asked for. */
export async function listOwnedServers(
  db: Queryable,
  asked: readonly { id: number; tenantId: number }[],
): Promise<Server[]> {
  const which = sql`s.id = any(${asked.map(({ id }) => id)}::bigint[]) and s.provisioning_state <> 'deleted'
    and (s.id, s.tenant_id) in (select * from unnest(${asked.map(({ id }) => id)}::bigint[],
      ${asked.map(({ tenantId }) => tenantId)}::bigint[]))`;
  return (await serversWhere(which).execute(db)).rows;
}

/** A server as its owner sees it, in one row. */
export type ProvisioningState = 'queued' | 'provisioning' | 'ready' | 'failed' | 'deleting' | 'deleted';

export type PowerState = 'unknown' | 'starting' | 'running' | 'stopping' | 'stopped' | 'rebooting';

/** The one state to poll; `deleted` servers are not there any more. */
export type ServerStatus = 'queued' | 'provisioning' | 'failed' | 'deleting' | PowerState;

export type PowerCommand = 'start' | 'shutdown' | 'stop' | 'reboot' | 'reset';

/** Changes of the guest that take more than its power. */
export type MachineCommand =
  | 'rebuild'
  | 'resize'
  | 'reset_password'
  | 'attach_address'
  | 'detach_address'
  | 'create_snapshot'
  | 'restore_snapshot'
  | 'rescue'
  | 'unrescue'
  | 'attach_iso'
  | 'detach_iso';

export type ActionCommand = 'create' | 'destroy' | PowerCommand | MachineCommand;

export interface ServerAddress {
  address: string;
  family: 4 | 6;
  prefixLength: number;
  gateway: string;
  isPrimary: boolean;
  reverseDns: string | null;
}

export interface ServerFailure {
  code: string;
  message: string;
  at: string;
}

export interface Server {
  id: number;
  tenantId: number;
  orderId: number;
  name: string;
  hostname: string;
  provisioningState: ProvisioningState;
  powerState: PowerState;
  failure: ServerFailure | null;
  labels: Record<string, string>;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  createdAt: Date;
  provisionedAt: Date | null;
  statusChangedAt: Date;
  updatedAt: Date;
  planId: number;
  planSlug: string;
  planName: string;
  vcpus: number;
  memoryMb: number;
  diskGb: number;
  imageId: number;
  imageSlug: string;
  imageName: string;
  imageFamily: string;
  locationId: number;
  locationSlug: string;
  locationName: string;
  country: string;
  clusterId: number;
  clusterName: string;
  /** The kind of hypervisor of its cluster. */
  driver: string;
  /** Where its guest was made; null before that. For staff. */
  node: string | null;
  addresses: ServerAddress[];
  /** False for a server that is reached through private networks only. */
  hasPublicIp: boolean;
  /** Rises with each new disk and root password, and with each rescue and its end. */
  machineVersion: number;
  /** True while it starts from a rescue disk. */
  isRescued: boolean;
  /** In its CD drive. */
  iso: { id: number; slug: string; name: string } | null;
  privateNetworks: Attachment[];
  /** Null until the first change: all traffic passes. */
  firewall: { isEnabled: boolean; status: 'applied' | 'pending' | 'failed'; ruleCount: number } | null;
  /** The unfinished action, while which the server is locked. */
  currentAction: ServerAction | null;
}

export interface ServerAction {
  id: number;
  serverId: number;
  command: ActionCommand;
  status: 'queued' | 'running' | 'success' | 'error';
  /** Percent. */
  progress: number;
  /** False when the server was in the wanted state already. */
  changed: boolean;
  outcome: string | null;
  error: { code: string; message: string } | null;
  requestedByKey: string | null;
  /** Their name; `Support` for a person of the provider. */
  requestedByPerson: string | null;
  /** RFC 3339 text. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
}

/** The image and the sizes of a server `s`, as a lateral row; none of these rows is locked with the server's. */
export const serverSizes: RawBuilder<unknown> = sql`
  select i.slug as image_slug, p.vcpus, p.memory_mb, coalesce(s.disk_gb, p.disk_gb) as disk_gb
  from images i, plans p where i.id = s.image_id and p.id = s.plan_id`;

/** The ids of the servers that hold room on a node. */
export const nodeServers = (nodeId: number): RawBuilder<unknown> => sql`
  select server_id from node_reservations where node_id = ${nodeId} and released_at is null`;

/** A server that holds capacity on a node, as its guest has to be. */
export interface SoldServer {
  id: number;
  nodeId: number;
  vcpus: number;
  memoryMb: number;
  /** In order. */
  macs: string[];
  /** False while something of it is changing. */
  isSettled: boolean;
}

/** The servers of these nodes, by id. */
export async function listSoldServers(db: Queryable, nodeIds: readonly number[]): Promise<SoldServer[]> {
  const { rows } = await sql<SoldServer>`
    select s.id, r.node_id, x.vcpus, x.memory_mb,
      array(select mac from (select n.mac_address as mac from server_interfaces n
          where n.server_id = s.id and n.released_at is null
        union all select a.mac_address from network_attachments a where a.server_id = s.id) m order by mac) as macs,
      s.provisioning_state = 'ready'
        and not exists (select 1 from server_actions a where a.server_id = s.id and a.status in ('queued', 'running'))
        and not exists (select 1 from network_attachments a where a.server_id = s.id and a.state <> 'attached')
        as is_settled
    from node_reservations r join servers s on s.id = r.server_id cross join lateral (${serverSizes}) x
    where r.node_id = any(${[...nodeIds]}::bigint[]) and r.released_at is null order by s.id`.execute(db);
  return rows;
}

/** The location of a server `s`, as a lateral row. */
export const clusterLocation: RawBuilder<unknown> = sql`
  select c.location_id from clusters c where c.id = s.cluster_id`;

export interface OwnedServer {
  tenantId: number;
  name: string;
  createdAt: Date;
}

/** A living server of the scope; null for any other. */
export async function findOwnedServer(
  db: Queryable,
  scope: Scope,
  serverId: number,
): Promise<OwnedServer | null> {
  const owned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<OwnedServer>`
    select tenant_id, name, created_at from servers
    where id = ${serverId} and ${owned} and provisioning_state <> 'deleted'`.execute(db);
  return rows[0] ?? null;
}

export interface InventoryRow {
  id: number;
  clusterId: number;
  node: string | null;
  name: string;
  provisioningState: Exclude<ProvisioningState, 'deleted'>;
  powerState: PowerState;
  updatedAt: Date;
  interfaces: {
    id: number;
    macAddress: string;
    bridge: string | null;
    vlan: number | null;
    addresses: string[];
  }[];
}

/** Living servers with their network interfaces, in the order of their ids, and the moment that the page is true for. */
export async function listInventory(
  db: Queryable,
  query: { afterId: number; limit: number; clusterIds?: readonly number[] },
): Promise<{ rows: InventoryRow[]; asOf: Date }> {
  const inClusters =
    query.clusterIds === undefined ? sql`true` : sql`s.cluster_id = any(${[...query.clusterIds]}::bigint[])`;
  const asOf = new Date(await readNowMs(db));
  const { rows } = await sql<InventoryRow>`
    select s.id, s.cluster_id, s.node, s.name, s.provisioning_state, s.power_state, s.updated_at,
      coalesce((select json_agg(json_build_object('id', n.id, 'macAddress', n.mac_address, 'bridge', n.bridge,
          'vlan', n.vlan, 'addresses', coalesce((select json_agg(host(a.address) order by a.is_primary desc, a.id)
            from allocations a where a.server_id = s.id and a.released_at is null), '[]')) order by n.id)
        from server_interfaces n where n.server_id = s.id and n.released_at is null), '[]') as interfaces
    from servers s
    where s.id > ${query.afterId} and s.provisioning_state <> 'deleted' and ${inClusters}
    order by s.id limit ${query.limit}`.execute(db);
  return { rows, asOf };
}
