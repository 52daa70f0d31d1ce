/** Statements on servers' cards. The constraints of the table decide between two callers of the same moment. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './authorise.ts';
import type { Attachment, AttachmentState, NetworkMember } from './network.ts';

/** What attaching needs to know of the server, which it reads beside its own tables. */
export interface AttachableServer {
  id: number;
  tenantId: number;
  locationId: number;
  provisioningState: string;
  hasPublicIp: boolean;
}

/** The server with its row locked until the transaction ends; null for a destroyed one and another's. */
export async function lockServer(tx: Queryable, scope: Scope, id: number): Promise<AttachableServer | null> {
  const owned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<AttachableServer>`
    select s.id, s.tenant_id as "tenantId", c.location_id as "locationId",
      s.provisioning_state as "provisioningState", s.has_public_ip as "hasPublicIp"
    from servers s join clusters c on c.id = s.cluster_id
    where s.id = ${id} and ${owned} and s.provisioning_state <> 'deleted' for update of s`.execute(tx);
  return rows[0] ?? null;
}

/** The same without a lock. */
export async function hasServer(db: Queryable, scope: Scope, id: number): Promise<boolean> {
  const owned = scope === 'all' ? sql`true` : sql`tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql`select 1 from servers
    where id = ${id} and ${owned} and provisioning_state <> 'deleted'`.execute(db);
  return rows.length === 1;
}

export async function listMembers(db: Queryable, networkId: number): Promise<NetworkMember[]> {
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
      not s.has_public_ip and a.state <> 'detaching' and not exists (
        select 1 from network_attachments o where o.server_id = a.server_id and o.id <> a.id and o.state <> 'detaching')
        as "isLastInterface",
      to_char(a.attached_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "attachedAt"
    from network_attachments a join private_networks n on n.id = a.network_id join servers s on s.id = a.server_id
    where a.server_id = any(${[...serverIds]}::bigint[]) order by a.server_id, a.id`.execute(db);
  return rows;
}

/** Those of servers, and those that orders hold until they are paid. */
export async function listTakenAddresses(tx: Queryable, networkId: number): Promise<string[]> {
  const { rows } = await sql<{ ip: string }>`
    select host(ip) as ip from network_attachments where network_id = ${networkId}
    union select host(ip) from network_holds where network_id = ${networkId}`.execute(tx);
  return rows.map((row) => row.ip);
}

/** One card as the hypervisor is told about it. */
export interface Card {
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

const cardColumns = sql`
  a.id, a.network_id as "networkId", a.server_id as "serverId", a.mac_address as mac, host(a.ip) as address,
  masklen(n.cidr) as "prefixLength", a.state, s.provisioning_state = 'ready' as "isReady"`;
const cardTables = sql`network_attachments a join private_networks n on n.id = a.network_id
  join servers s on s.id = a.server_id`;

export async function findCard(db: Queryable, id: number): Promise<Card | null> {
  const { rows } = await sql<Card>`select ${cardColumns} from ${cardTables} where a.id = ${id}`.execute(db);
  return rows[0] ?? null;
}

export async function findCardOf(db: Queryable, networkId: number, serverId: number): Promise<Card | null> {
  const { rows } = await sql<Card>`
    select ${cardColumns} from ${cardTables}
    where a.network_id = ${networkId} and a.server_id = ${serverId}`.execute(db);
  return rows[0] ?? null;
}

export async function listCardsOf(
  db: Queryable,
  of: { serverId: number } | { networkId: number },
): Promise<Card[]> {
  const condition =
    'serverId' in of ? sql`a.server_id = ${of.serverId}` : sql`a.network_id = ${of.networkId}`;
  const { rows } = await sql<Card>`
    select ${cardColumns} from ${cardTables} where ${condition} order by a.id`.execute(db);
  return rows;
}

/** The state of a card with its row locked; null when it is gone. */
export async function lockCardState(tx: Queryable, id: number): Promise<AttachmentState | null> {
  const { rows } = await sql<{ state: AttachmentState }>`
    select state from network_attachments where id = ${id} for update`.execute(tx);
  return rows[0]?.state ?? null;
}

/** A fresh id, drawn before the row exists, because the MAC is made from it. */
export async function nextAttachmentId(tx: Queryable): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    select nextval(pg_get_serial_sequence('network_attachments', 'id')) as id`.execute(tx);
  return rows[0]!.id;
}

export async function insertAttachment(
  tx: Queryable,
  card: { id: number; networkId: number; serverId: number; ip: string; macAddress: string },
): Promise<void> {
  await sql`insert into network_attachments (id, network_id, server_id, ip, mac_address)
    overriding system value
    values (${card.id}, ${card.networkId}, ${card.serverId}, ${card.ip}::inet, ${card.macAddress})`.execute(
    tx,
  );
}

export async function setCardState(
  tx: Queryable,
  id: number,
  change: { state: AttachmentState; error?: { code: string; message: string }; requiresReboot?: boolean },
): Promise<void> {
  await sql`update network_attachments set state = ${change.state},
      error = ${change.error ? JSON.stringify(change.error) : null}::jsonb,
      requires_reboot = coalesce(${change.requiresReboot ?? null}, requires_reboot),
      attached_at = case when ${change.state} = 'attached' then coalesce(attached_at, svc_now()) else attached_at end
    where id = ${id}`.execute(tx);
}

/** All cards of a server are on their way out. */
export async function detachAll(tx: Queryable, serverId: number): Promise<void> {
  await sql`update network_attachments set state = 'detaching', error = null where server_id = ${serverId}`.execute(
    tx,
  );
}

export async function deleteCard(tx: Queryable, id: number): Promise<void> {
  await sql`delete from network_attachments where id = ${id}`.execute(tx);
}

export async function deleteCardsOf(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from network_attachments where server_id = ${serverId}`.execute(tx);
}

/** The guest has its cards since it was made. */
export async function markAttached(tx: Queryable, serverId: number): Promise<void> {
  await sql`update network_attachments set state = 'attached', error = null, attached_at = svc_now()
    where server_id = ${serverId} and state = 'attaching'`.execute(tx);
}
