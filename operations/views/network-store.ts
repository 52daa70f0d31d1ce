/** Private networks with their location, the servers on them and their network interfaces. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';
import { isLastInterface } from './server-store.ts';

export type SyncState = 'pending' | 'synced' | 'error';

export type AttachmentState = 'attaching' | 'attached' | 'detaching' | 'error';

export interface Network {
  id: number;
  tenantId: number;
  name: string;
  description: string | null;
  cidr: string;
  locationId: number;
  locationSlug: string;
  locationName: string;
  syncState: SyncState;
  syncError: { code: string; message: string; at: string } | null;
  lastSyncedAt: Date | null;
  /** Network interfaces, including those that are being removed. */
  memberCount: number;
  labels: Record<string, string>;
  createdAt: Date;
  updatedAt: Date;
}

export interface NetworkMember {
  serverId: number;
  name: string;
  ip: string;
  macAddress: string;
  state: AttachmentState;
}

/** A server's interface on a network, as shown in the server. */
export interface Attachment {
  serverId: number;
  networkId: number;
  name: string;
  cidr: string;
  ip: string;
  macAddress: string;
  state: AttachmentState;
  error: { code: string; message: string } | null;
  /** Detaching it would leave the server without any way in. */
  isLastInterface: boolean;
  requiresReboot: boolean;
  /** RFC 3339. */
  attachedAt: string | null;
}

export const columns = sql`
  n.id, n.tenant_id, n.name, n.description, n.cidr::text as cidr, n.location_id, l.slug as location_slug,
  l.name as location_name, n.sync_state, n.sync_error, n.last_synced_at, n.labels, n.created_at, n.updated_at,
  (select count(*) from network_attachments a where a.network_id = n.id) as member_count`;

export const tables = sql`private_networks n join locations l on l.id = n.location_id`;

export interface NetworkFilter {
  name?: string | undefined;
  /** Every one of them must hold. */
  labels?: readonly LabelCondition[] | undefined;
  /** Only networks that this server is on. */
  serverId?: number | undefined;
  afterId?: number | undefined;
  limit: number;
}

/** What a label has to be: there, absent, one value, any other value (or absent). */
export interface LabelCondition {
  key: string;
  is: 'present' | 'absent' | 'equal' | 'unequal';
  value: string;
}

export async function findNetwork(db: Queryable, scope: Scope, id: number): Promise<Network | null> {
  const { rows } = await sql<Network>`
    select ${columns} from ${tables} where n.id = ${id} and ${ownsNetwork(scope)}`.execute(db);
  return rows[0] ?? null;
}

/** Oldest first, by id. */
export async function listNetworks(db: Queryable, scope: Scope, filter: NetworkFilter): Promise<Network[]> {
  const { rows } = await sql<Network>`
    select ${columns} from ${tables}
    where ${conditions(scope, filter)} and n.id > ${filter.afterId ?? 0}
    order by n.id limit ${filter.limit}`.execute(db);
  return rows;
}

export async function countNetworks(db: Queryable, scope: Scope, filter: NetworkFilter): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from private_networks n where ${conditions(scope, filter)}`.execute(db);
  return rows[0]!.count;
}

export function ownsNetwork(scope: Scope): RawBuilder<unknown> {
  return scope === 'all' ? sql`true` : sql`n.tenant_id = any(${[...scope]}::bigint[])`;
}

export function conditions(scope: Scope, filter: NetworkFilter): RawBuilder<unknown> {
  const all = [ownsNetwork(scope)];
  if (filter.name !== undefined) all.push(sql`n.name = ${filter.name}`);
  if (filter.serverId !== undefined)
    all.push(
      sql`exists (select 1 from network_attachments a where a.network_id = n.id and a.server_id = ${filter.serverId})`,
    );
  for (const condition of filter.labels ?? []) all.push(labelCondition(condition));
  return sql.join(all, sql` and `);
}

export function labelCondition({ key, is, value }: LabelCondition): RawBuilder<unknown> {
  switch (is) {
    case 'present':
      return sql`jsonb_exists(n.labels, ${key})`;
    case 'absent':
      return sql`not jsonb_exists(n.labels, ${key})`;
    case 'equal':
      return sql`n.labels ->> ${key} = ${value}`;
    case 'unequal':
      return sql`n.labels ->> ${key} is distinct from ${value}`;
  }
}

/** The same without a lock. */
export async function hasServer(db: Queryable, scope: Scope, id: number): Promise<boolean> {
  const owned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql`select 1 from servers
    where id = ${id} and ${owned} and provisioning_state <> 'deleted'`.execute(db);
  return rows.length === 1;
}

export async function listNetworkMembers(db: Queryable, networkId: number): Promise<NetworkMember[]> {
  const { rows } = await sql<NetworkMember>`
    select a.server_id, s.name, host(a.ip) as ip, a.mac_address, a.state
    from network_attachments a join servers s on s.id = a.server_id
    where a.network_id = ${networkId} order by a.ip`.execute(db);
  return rows;
}

export async function listAttachments(db: Queryable, serverIds: readonly number[]): Promise<Attachment[]> {
  const { rows } = await sql<Attachment>`
    select a.server_id, a.network_id, n.name, n.cidr::text as cidr, host(a.ip) as ip, a.mac_address, a.state, a.error,
      a.requires_reboot, ${sql.raw(isLastInterface)} as is_last_interface,
      to_char(a.attached_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as attached_at
    from network_attachments a join private_networks n on n.id = a.network_id join servers s on s.id = a.server_id
    where a.server_id = any(${[...serverIds]}::bigint[]) order by a.server_id, a.id`.execute(db);
  return rows;
}

/** A network interface with the data for its hypervisor. */
export interface Nic {
  id: number;
  networkId: number;
  serverId: number;
  mac: string;
  address: string;
  prefixLength: number;
  /** The number of the network. */
  segment: number | null;
  state: AttachmentState;
  /** Of the server. */
  isReady: boolean;
}

export const nicColumns = sql`
  a.id, a.network_id, a.server_id, a.mac_address as mac, host(a.ip) as address, masklen(n.cidr) as prefix_length,
  n.segment, a.state, s.provisioning_state = 'ready' as is_ready`;

export const nicTables = sql`network_attachments a join private_networks n on n.id = a.network_id
  join servers s on s.id = a.server_id`;

export async function findNic(db: Queryable, id: number): Promise<Nic | null> {
  const { rows } = await sql<Nic>`select ${nicColumns} from ${nicTables} where a.id = ${id}`.execute(db);
  return rows[0] ?? null;
}

export async function findNicOf(db: Queryable, networkId: number, serverId: number): Promise<Nic | null> {
  const { rows } = await sql<Nic>`
    select ${nicColumns} from ${nicTables}
    where a.network_id = ${networkId} and a.server_id = ${serverId}`.execute(db);
  return rows[0] ?? null;
}

/** Numbers of the networks that servers of the node are on. */
export async function listSegmentsOfNode(db: Queryable, nodeId: number): Promise<number[]> {
  const { rows } = await sql<{ segment: number | null }>`
    select distinct n.segment from private_networks n join network_attachments a on a.network_id = n.id
      join node_reservations r on r.server_id = a.server_id and r.released_at is null
    where r.node_id = ${nodeId}`.execute(db);
  return rows.flatMap(({ segment }) => segment ?? []);
}

/** What the nodes of a location have for bridges of private networks; nodes without any are left out. */
export async function listNetworkBridges(db: Queryable, locationId: number): Promise<string[]> {
  const { rows } = await sql<{ pattern: string | null }>`
    select distinct n.network_bridges as pattern from nodes n join clusters c on c.id = n.cluster_id
    where c.location_id = ${locationId}`.execute(db);
  return rows.flatMap(({ pattern }) => pattern ?? []);
}

export async function listNicsOf(
  db: Queryable,
  of: { serverId: number } | { networkId: number },
): Promise<Nic[]> {
  const condition =
    'serverId' in of ? sql`a.server_id = ${of.serverId}` : sql`a.network_id = ${of.networkId}`;
  const { rows } = await sql<Nic>`
    select ${nicColumns} from ${nicTables} where ${condition} order by a.id`.execute(db);
  return rows;
}
