/** Addresses that accounts keep, with where they are and which server has them. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A public address that an account keeps, with or without a server. */
export interface ReservedAddress {
  id: number;
  tenantId: number;
  clusterId: number;
  poolId: number;
  name: string;
  address: string;
  family: 4 | 6;
  prefixLength: number;
  gateway: string;
  locationId: number;
  locationSlug: string;
  state: 'available' | 'attaching' | 'attached' | 'detaching';
  serverId: number | null;
  /** The first address of its server. */
  isPrimary: boolean;
  /** Its server was deployed with it. */
  cameWithServer: boolean;
  createdAt: Date;
  updatedAt: Date;
}

const select = sql`
  select r.id, r.tenant_id, r.cluster_id, r.pool_id, r.name, host(r.address) as address, family(r.address) as family,
    masklen(p.prefix) as prefix_length, host(p.gateway) as gateway, l.id as location_id, l.slug as location_slug,
    r.state, r.server_id,
    coalesce((select a.is_primary from allocations a where a.cluster_id = r.cluster_id and a.address = r.address
      and a.released_at is null), false) as is_primary, r.came_with_server, r.created_at, r.updated_at
  from reserved_addresses r join address_pools p on p.id = r.pool_id join clusters c on c.id = r.cluster_id
    join locations l on l.id = c.location_id`;

/** Oldest first. */
export async function listReserved(db: Queryable, tenantId: number): Promise<ReservedAddress[]> {
  const { rows } =
    await sql<ReservedAddress>`${select} where r.tenant_id = ${tenantId} order by r.id`.execute(db);
  return rows;
}

export async function findReserved(
  db: Queryable,
  tenantId: number,
  id: number,
): Promise<ReservedAddress | null> {
  const { rows } = await sql<ReservedAddress>`
    ${select} where r.tenant_id = ${tenantId} and r.id = ${id}`.execute(db);
  return rows[0] ?? null;
}
