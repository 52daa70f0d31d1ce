/** Locations as they are offered. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface OfferedLocation {
  id: number;
  slug: string;
  name: string;
  country: string;
  /** Of its clusters. */
  drivers: string[];
}

/** Locations that have a cluster. */
export async function listOfferedLocations(db: Queryable): Promise<OfferedLocation[]> {
  const { rows } = await sql<OfferedLocation>`
    select l.id, l.slug, l.name, l.country, array_agg(distinct c.driver) as drivers
    from locations l join clusters c on c.location_id = l.id group by l.id order by l.slug`.execute(db);
  return rows;
}

export interface Availability {
  planId: number;
  planSlug: string;
  locationId: number;
  locationSlug: string;
  isAvailable: boolean;
}

/**
 * Each offered plan in each offered location, and whether an order of one server with a public address would find room:
 * an open node with enough of everything, in a cluster with a free address of every family that it has. The order looks
 * again, with the rows locked.
 */
export async function listAvailability(db: Queryable): Promise<Availability[]> {
  const { rows } = await sql<Availability>`
    with pools as (
      select p.cluster_id, family(p.prefix) as family, bool_or(
        -- An IPv6 range is never used up, and may have more addresses than a bigint counts.
        case when family(p.prefix) = 6 then true else
          p.last_address - p.first_address + (p.gateway not between p.first_address and p.last_address)::int
            > (select count(*) from allocations a where a.pool_id = p.id and a.released_at is null)
            + (select count(*) from address_holds h where h.pool_id = p.id)
            + (select count(*) from reserved_addresses r where r.pool_id = p.id and r.state = 'available') end) as has_free
      from address_pools p group by p.cluster_id, family(p.prefix)),
    able as (select cluster_id from pools group by cluster_id having bool_and(has_free)),
    rooms as (
      select c.location_id, n.vcpus - coalesce(r.vcpus, 0) as vcpus, n.memory_mb - coalesce(r.memory_mb, 0) as memory_mb,
        n.disk_gb - coalesce(r.disk_gb, 0) as disk_gb
      from able join clusters c on c.id = able.cluster_id join nodes n on n.cluster_id = c.id and n.is_open
      left join lateral (select sum(vcpus) as vcpus, sum(memory_mb) as memory_mb, sum(disk_gb) as disk_gb
        from node_reservations where node_id = n.id and released_at is null) r on true)
    select p.id as plan_id, p.slug as plan_slug, l.id as location_id, l.slug as location_slug,
      exists (select from rooms where rooms.location_id = l.id and rooms.vcpus >= p.vcpus
        and rooms.memory_mb >= p.memory_mb and rooms.disk_gb >= p.disk_gb) as is_available
    from plans p cross join locations l
    where p.is_offered and l.id in (select location_id from clusters)
    order by l.slug, p.hourly_quanta, p.id`.execute(db);
  return rows;
}
