/** The network interfaces of servers on private networks. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Attachment, AttachmentState, NetworkMember } from './network-store.ts';
import type { Scope } from './scope.ts';
import { isLastInterface } from './server-store.ts';

/** The same without a lock. */
export async function hasServer(db: Queryable, scope: Scope, id: number): Promise<boolean> {
  const owned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql`select 1 from servers
    where id = ${id} and ${owned} and provisioning_state <> 'deleted'`.execute(db);
  return rows.length === 1;
}

export async function listNetworkMembers(db: Queryable, networkId: number): Promise<NetworkMember[]> {
  const { rows } = await sql<NetworkMember>`
    select a.server_id as "serverId", s.name, host(a.ip) as ip, a.mac_address as "macAddress", a.state
    from network_attachments a join servers s on s.id = a.server_id
    where a.network_id = ${networkId} order by a.ip`.execute(db);
  return rows;
}

export async function listAttachments(db: Queryable, serverIds: readonly number[]): Promise<Attachment[]> {
  const { rows } = await sql<Attachment>`
    select a.server_id as "serverId", a.network_id as "networkId", n.name, n.cidr::text as cidr, host(a.ip) as ip,
      a.mac_address as "macAddress", a.state, a.error, a.requires_reboot as "requiresReboot",
      ${sql.raw(isLastInterface)} as "isLastInterface",
      to_char(a.attached_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "attachedAt"
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
  state: AttachmentState;
  /** Of the server. */
  isReady: boolean;
}

export const nicColumns = sql`
  a.id, a.network_id as "networkId", a.server_id as "serverId", a.mac_address as mac, host(a.ip) as address,
  masklen(n.cidr) as "prefixLength", a.state, s.provisioning_state = 'ready' as "isReady"`;

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
