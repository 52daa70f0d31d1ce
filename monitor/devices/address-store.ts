import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An uninterrupted period in which a device owned an address. */
export interface AddressOwner {
  deviceId: number;
  mac: string;
  /** Present name from the operator or the inventory; null without one. */
  name: string | null;
  firstSeenMs: number;
  lastSeenMs: number;
  /** Null while it continues. */
  endedAtMs: number | null;
}

/** A period in which several MACs claimed an address. */
export interface AddressConflict {
  openedAtMs: number;
  resolvedAtMs: number | null;
  macs: string[];
}

/** An address, with its segment unless it is globally unique. */
export interface AddressPlace {
  address: string;
  segment: string;
}

/** The segments of a site on which an address had owners, the most recent first; none for a globally unique address. */
export async function listSegments(db: Queryable, siteId: number, address: string): Promise<string[]> {
  const { rows } = await sql<{ segment: string }>`
    select segment from ip_bindings where site_id = ${siteId} and address = ${address}::inet and segment <> ''
    group by segment order by max(last_seen_at) desc, segment limit 100`.execute(db);
  return rows.map((row) => row.segment);
}

/** Owners of an address and their periods, for three months; the present owner first. */
export async function listOwners(
  db: Queryable,
  siteId: number,
  { address, segment }: AddressPlace,
  limit: number,
): Promise<AddressOwner[]> {
  const { rows } = await sql<AddressOwner>`
    select b.device_id, b.mac, coalesce(n.name, d.matched_vm_name) as name,
      (extract(epoch from b.first_seen_at) * 1000)::float8 as first_seen_ms,
      (extract(epoch from b.last_seen_at) * 1000)::float8 as last_seen_ms,
      (extract(epoch from b.ended_at) * 1000)::float8 as ended_at_ms
    from ip_bindings b join devices d on d.id = b.device_id left join device_names n on n.mac = b.mac
    where b.site_id = ${siteId} and b.address = ${address}::inet and b.segment = ${segment}
    order by b.ended_at desc nulls first, b.last_seen_at desc, b.id desc limit ${limit}`.execute(db);
  return rows;
}

/** Open ones first. */
export async function listAddressConflicts(
  db: Queryable,
  siteId: number,
  { address, segment }: AddressPlace,
  limit: number,
): Promise<AddressConflict[]> {
  const { rows } = await sql<AddressConflict>`
    select (extract(epoch from opened_at) * 1000)::float8 as opened_at_ms,
      (extract(epoch from resolved_at) * 1000)::float8 as resolved_at_ms, macs
    from ip_conflicts where site_id = ${siteId} and address = ${address}::inet and segment = ${segment}
    order by resolved_at desc nulls first, id desc limit ${limit}`.execute(db);
  return rows;
}
