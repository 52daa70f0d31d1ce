/** Every statement on kept addresses. Each names the workspace or the server: an address of another one is not there. */
import { sql } from 'kysely';
import { findReserved, type ReservedAddress } from '#operations/views/reserved-address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** As `findReserved`, with its row locked until the transaction ends. */
export async function lockReserved(
  tx: Queryable,
  tenantId: number,
  id: number,
): Promise<ReservedAddress | null> {
  await sql`select 1 from reserved_addresses where tenant_id = ${tenantId} and id = ${id} for update`.execute(
    tx,
  );
  return findReserved(tx, tenantId, id);
}

/** How many the workspace keeps, locked against two additions beside each other, so that the limit holds. */
export async function lockReservedCount(tx: Queryable, tenantId: number): Promise<number> {
  await sql`select pg_advisory_xact_lock(hashtextextended('reserved_addresses', ${tenantId}::bigint))`.execute(
    tx,
  );
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from reserved_addresses where tenant_id = ${tenantId}`.execute(tx);
  return rows[0]!.count;
}

/** An address that a server of the workspace has now, its generation locked until the transaction ends where that is asked for. */
export async function findHeldAddress(
  tx: Queryable,
  tenantId: number,
  address: string,
  isLocked = false,
): Promise<{ poolId: number; clusterId: number; serverId: number; keptAs: number | null } | null> {
  const { rows } = await sql<{ poolId: number; clusterId: number; serverId: number; keptAs: number | null }>`
    select a.pool_id, a.cluster_id, a.server_id,
      (select r.id from reserved_addresses r where r.cluster_id = a.cluster_id and r.address = a.address) as kept_as
    from allocations a where a.tenant_id = ${tenantId} and a.address = ${address}::inet and a.released_at is null
    order by a.id limit 1 ${isLocked ? sql`for update of a` : sql``}`.execute(tx);
  return rows[0] ?? null;
}

export async function insertReserved(
  tx: Queryable,
  given: Pick<ReservedAddress, 'tenantId' | 'poolId' | 'clusterId' | 'address' | 'serverId'> & {
    name?: string;
  },
): Promise<number> {
  const isHeld = given.serverId !== null;
  const { rows } = await sql<{ id: number }>`
    insert into reserved_addresses (tenant_id, pool_id, cluster_id, address, name, server_id, state, came_with_server)
    values (${given.tenantId}, ${given.poolId}, ${given.clusterId}, ${given.address}::inet,
      ${given.name ?? given.address}, ${given.serverId}, ${isHeld ? 'attached' : 'available'}, ${isHeld})
    returning id`.execute(tx);
  return rows[0]!.id;
}

export async function renameReserved(
  tx: Queryable,
  tenantId: number,
  id: number,
  name: string,
): Promise<void> {
  await sql`update reserved_addresses set name = ${name}, updated_at = svc_now()
    where tenant_id = ${tenantId} and id = ${id}`.execute(tx);
}

export async function deleteReserved(tx: Queryable, tenantId: number, id: number): Promise<void> {
  await sql`delete from reserved_addresses where tenant_id = ${tenantId} and id = ${id}`.execute(tx);
}

/** Gives the server the address: a generation begins. The row is locked by the caller. */
export async function beginAttachment(tx: Queryable, id: number, serverId: number): Promise<void> {
  await sql`
    with attached as (
      update reserved_addresses set server_id = ${serverId}, state = 'attaching', updated_at = svc_now()
      where id = ${id} returning *)
    insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
    select r.pool_id, r.cluster_id, r.tenant_id, r.server_id, r.address, masklen(p.prefix), p.gateway, false
    from attached r join address_pools p on p.id = r.pool_id`.execute(tx);
}

export async function setState(
  tx: Queryable,
  id: number,
  serverId: number,
  state: 'attached' | 'detaching',
): Promise<void> {
  await sql`update reserved_addresses set state = ${state}, updated_at = svc_now()
    where id = ${id} and server_id = ${serverId}`.execute(tx);
}

/** Addresses that the server's guest is to have, the primary one first: without those that are being detached. */
export async function listGuestAddresses(
  db: Queryable,
  serverId: number,
): Promise<{ address: string; prefixLength: number; gateway: string }[]> {
  const { rows } = await sql<{ address: string; prefixLength: number; gateway: string }>`
    select host(a.address) as address, a.prefix_length, host(a.gateway) as gateway
    from allocations a
    where a.server_id = ${serverId} and a.released_at is null and not exists (
      select 1 from reserved_addresses r where r.cluster_id = a.cluster_id and r.address = a.address
        and r.state = 'detaching')
    order by a.is_primary desc, a.id`.execute(db);
  return rows;
}

/** Kept addresses that are being taken from the server. */
export async function listDetaching(db: Queryable, serverId: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select id from reserved_addresses where server_id = ${serverId} and state = 'detaching' order by id`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}

/** An address whose generation has ended. */
export interface EndedGeneration {
  clusterId: number;
  address: string;
  /** It had a reverse name. */
  isNamed: boolean;
}

/** Ends the generation of each of these kept addresses that the server still has; returns them. */
export async function endAttachments(
  tx: Queryable,
  serverId: number,
  ids: readonly number[] | 'all',
): Promise<(EndedGeneration & { id: number })[]> {
  const named = ids === 'all' ? sql`true` : sql`id = any(${[...ids]}::bigint[]) and state = 'detaching'`;
  const { rows } = await sql<EndedGeneration & { id: number }>`
    with detached as (
      update reserved_addresses set server_id = null, state = 'available', came_with_server = false,
        updated_at = svc_now()
      where server_id = ${serverId} and ${named} returning id, cluster_id, address),
    ended as (
      update allocations a set released_at = svc_now() from detached d
      where a.cluster_id = d.cluster_id and a.address = d.address and a.server_id = ${serverId} and a.released_at is null
      returning a.cluster_id, a.address, a.reverse_dns is not null as is_named)
    select d.id, d.cluster_id, host(d.address) as address, coalesce(e.is_named, false) as is_named
    from detached d left join ended e on e.cluster_id = d.cluster_id and e.address = d.address order by d.id`.execute(
    tx,
  );
  return rows;
}
