/** Statements on networks and on servers' interfaces. Owners are filtered here, never after the fact. */
import { sql } from 'kysely';
import { type AttachmentState, type Network, ownsNetwork } from '#operations/views/network-store.ts';
import type { Scope } from '#operations/views/scope.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function countOfTenants(
  db: Queryable,
  tenantIds: readonly number[],
): Promise<Map<number, number>> {
  const { rows } = await sql<{ tenantId: number; count: number }>`
    select tenant_id, count(*) as count from private_networks
    where tenant_id = any(${[...tenantIds]}::bigint[]) group by tenant_id`.execute(db);
  return new Map(rows.map((row) => [row.tenantId, row.count]));
}

/**
 * The blocks that an account has, with every other creation of this account held back until the transaction ends: so
 * neither the cap nor the free block is decided twice on one state.
 */
export async function lockBlocks(tx: Queryable, tenantId: number): Promise<string[]> {
  await sql`select pg_advisory_xact_lock(7318070, ${tenantId}::int)`.execute(tx);
  const { rows } = await sql<{ cidr: string }>`
    select cidr::text as cidr from private_networks where tenant_id = ${tenantId} order by cidr`.execute(tx);
  return rows.map((row) => row.cidr);
}

/** The lowest number of the range that no network of the location has; held until the transaction ends. Null: all are taken. */
export async function reserveSegment(
  tx: Queryable,
  locationId: number,
  range: { first: number; last: number },
): Promise<number | null> {
  await sql`select pg_advisory_xact_lock(7318071, ${locationId}::int)`.execute(tx);
  const { rows } = await sql<{ segment: number | null }>`
    with taken as (select segment from private_networks where location_id = ${locationId} and segment is not null)
    select min(candidate) as segment from (
      select ${range.first}::int as candidate union all select segment + 1 from taken) candidates
    where candidate between ${range.first} and ${range.last} and candidate not in (select segment from taken)`.execute(
    tx,
  );
  return rows[0]!.segment;
}

export async function insertNetwork(
  tx: Queryable,
  network: {
    tenantId: number;
    locationId: number;
    name: string;
    description: string | null;
    cidr: string;
    segment: number | null;
    labels: Readonly<Record<string, string>>;
  },
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into private_networks (tenant_id, location_id, name, description, cidr, segment, labels)
    values (${network.tenantId}, ${network.locationId}, ${network.name}, ${network.description},
      ${network.cidr}::cidr, ${network.segment}, ${JSON.stringify(network.labels)}::jsonb)
    returning id`.execute(tx);
  return rows[0]!.id;
}

export interface LockedNetwork {
  id: number;
  tenantId: number;
  name: string;
  cidr: string;
  locationId: number;
  labels: Record<string, string>;
  syncState: Network['syncState'];
}

/** The network with its row locked: other attachments, changes and deletions wait. */
export async function lockNetwork(tx: Queryable, scope: Scope, id: number): Promise<LockedNetwork | null> {
  const { rows } = await sql<LockedNetwork>`
    select n.id, n.tenant_id, n.name, n.cidr::text as cidr, n.location_id, n.labels, n.sync_state
    from private_networks n where n.id = ${id} and ${ownsNetwork(scope)} for update`.execute(tx);
  return rows[0] ?? null;
}

export async function updateNetwork(
  tx: Queryable,
  id: number,
  change: { name?: string; description?: string | null; labels?: Readonly<Record<string, string>> },
): Promise<void> {
  await sql`update private_networks set
      name = coalesce(${change.name ?? null}, name),
      description = case when ${change.description === undefined} then description
        else ${change.description ?? null} end,
      labels = coalesce(${change.labels ? JSON.stringify(change.labels) : null}::jsonb, labels),
      updated_at = svc_now()
    where id = ${id}`.execute(tx);
}

export async function deleteNetwork(tx: Queryable, id: number): Promise<void> {
  await sql`delete from private_networks where id = ${id}`.execute(tx);
}

/** Notes the wish; true when a run has to be queued for it, false when one waits already. */
export async function wantSync(tx: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql<{ wasPending: boolean }>`
    update private_networks n set sync_state = 'pending', sync_wanted = n.sync_wanted + 1
    from (select id, sync_state = 'pending' as was_pending from private_networks where id = ${id} for update) before
    where n.id = before.id returning before.was_pending`.execute(tx);
  return rows[0]?.wasPending === false;
}

/** The number of the newest wish; null when the network is gone. */
export async function findSyncWanted(db: Queryable, id: number): Promise<number | null> {
  const { rows } = await sql<{ wanted: number }>`
    select sync_wanted as wanted from private_networks where id = ${id}`.execute(db);
  return rows[0]?.wanted ?? null;
}

/** Ends the wish of this number and returns whose network it is; null when there is a newer wish, which stays pending. */
export async function finishSync(
  tx: Queryable,
  id: number,
  wanted: number,
  error: { code: string; message: string } | null,
): Promise<number | null> {
  const { rows } = await sql<{ tenantId: number }>`
    update private_networks set sync_state = ${error === null ? 'synced' : 'error'},
      sync_error = ${error === null ? null : JSON.stringify(error)}::jsonb
        || jsonb_build_object('at', to_char(svc_now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
      last_synced_at = case when ${error === null} then svc_now() else last_synced_at end
    where id = ${id} and sync_wanted = ${wanted} returning tenant_id`.execute(tx);
  return rows[0]?.tenantId ?? null;
}

/** Addresses of networks that orders hold until they are paid. */
export async function insertHold(
  tx: Queryable,
  hold: { networkId: number; serverId: number; ip: string },
): Promise<void> {
  await sql`insert into network_holds (network_id, ip, server_id)
    values (${hold.networkId}, ${hold.ip}::inet, ${hold.serverId})`.execute(tx);
}

/** Ends a server's hold; the address that it held, or null when it held none. */
export async function takeHold(tx: Queryable, serverId: number): Promise<string | null> {
  const { rows } = await sql<{ ip: string }>`
    delete from network_holds where server_id = ${serverId} returning host(ip) as ip`.execute(tx);
  return rows[0]?.ip ?? null;
}

export async function countHolds(tx: Queryable, networkId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from network_holds where network_id = ${networkId}`.execute(tx);
  return rows[0]!.count;
}

// Statements on servers' network interfaces. Constraints of the table decide between concurrent callers.

/** Those of servers, and those that orders hold until they are paid. */
export async function listTakenAddresses(tx: Queryable, networkId: number): Promise<string[]> {
  const { rows } = await sql<{ ip: string }>`
    select host(ip) as ip from network_attachments where network_id = ${networkId}
    union select host(ip) from network_holds where network_id = ${networkId}`.execute(tx);
  return rows.map((row) => row.ip);
}

/** The state of a network interface with its row locked; null when it is gone. */
export async function lockNicState(tx: Queryable, id: number): Promise<AttachmentState | null> {
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
  nic: { id: number; networkId: number; serverId: number; ip: string; macAddress: string },
): Promise<void> {
  await sql`insert into network_attachments (id, network_id, server_id, ip, mac_address)
    overriding system value
    values (${nic.id}, ${nic.networkId}, ${nic.serverId}, ${nic.ip}::inet, ${nic.macAddress})`.execute(tx);
}

export async function setNicState(
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

/** Marks all network interfaces of a server for removal. */
export async function detachAll(tx: Queryable, serverId: number): Promise<void> {
  await sql`update network_attachments set state = 'detaching', error = null where server_id = ${serverId}`.execute(
    tx,
  );
}

/** Returns whether it had ever been attached. */
export async function deleteNic(tx: Queryable, id: number): Promise<boolean> {
  const { rows } = await sql<{ wasAttached: boolean }>`
    delete from network_attachments where id = ${id} returning attached_at is not null as was_attached`.execute(
    tx,
  );
  return rows[0]?.wasAttached ?? false;
}

export async function deleteNicsOf(tx: Queryable, serverId: number): Promise<void> {
  await sql`delete from network_attachments where server_id = ${serverId}`.execute(tx);
}

/** The guest was created with these network interfaces. */
export async function markAttached(tx: Queryable, serverId: number, macs: readonly string[]): Promise<void> {
  await sql`update network_attachments set state = 'attached', error = null, attached_at = svc_now()
    where server_id = ${serverId} and state = 'attaching' and mac_address = any(${[...macs]}::text[])`.execute(
    tx,
  );
}
