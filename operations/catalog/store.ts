import { sql } from 'kysely';
import type { ImageKind } from '#contracts/capabilities.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface Plan {
  id: number;
  slug: string;
  name: string;
  vcpus: number;
  memoryMb: number;
  diskGb: number;
  /** What a server's public interface sends and receives a second; null: as much as its node can. */
  portMbit: number | null;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
}
export interface Image {
  id: number;
  slug: string;
  name: string;
  family: string;
  kind: ImageKind;
}
export interface Location {
  id: number;
  slug: string;
  name: string;
  country: string;
}

export async function listAllLocations(db: Queryable): Promise<Location[]> {
  const { rows } = await sql<Location>`
    select id, slug, name, country from locations order by slug`.execute(db);
  return rows;
}

/** Grows with every change of what can be ordered, of prices and of the room that there is. */
export async function readVersion(db: Queryable): Promise<number> {
  const { rows } = await sql<{ version: number }>`
    select coalesce(sum(weight), 0)::bigint as version from catalog_changes`.execute(db);
  return rows[0]!.version;
}

/** Something that can be ordered, or could be once. */
export type Offer<T> = T & { isOffered: boolean };

/** Withdrawn plans as well, after the offered ones; cheapest first. */
export async function listAllPlans(db: Queryable): Promise<Offer<Plan>[]> {
  const { rows } = await sql<Offer<Plan>>`
    select id, slug, name, vcpus, memory_mb, disk_gb, port_mbit, hourly_quanta, monthly_cap_quanta, is_offered
    from plans order by is_offered desc, hourly_quanta, id`.execute(db);
  return rows;
}

/** Withdrawn images as well, after the offered ones; by slug. */
export async function listAllImages(db: Queryable): Promise<Offer<Image>[]> {
  const { rows } = await sql<Offer<Image>>`
    select id, slug, name, family, kind, is_offered from images order by is_offered desc, slug`.execute(db);
  return rows;
}

export async function insertLocation(db: Queryable, location: Omit<Location, 'id'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into locations (slug, name, country) values (${location.slug}, ${location.name}, ${location.country})
    returning id`.execute(db);
  return rows[0]!.id;
}

export async function insertPlan(db: Queryable, plan: Omit<Plan, 'id'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into plans (slug, name, vcpus, memory_mb, disk_gb, port_mbit, hourly_quanta, monthly_cap_quanta)
    values (${plan.slug}, ${plan.name}, ${plan.vcpus}, ${plan.memoryMb}, ${plan.diskGb}, ${plan.portMbit},
            ${plan.hourlyQuanta}, ${plan.monthlyCapQuanta}) returning id`.execute(db);
  return rows[0]!.id;
}

export async function insertImage(db: Queryable, image: Omit<Image, 'id'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into images (slug, name, family, kind)
    values (${image.slug}, ${image.name}, ${image.family}, ${image.kind}) returning id`.execute(db);
  return rows[0]!.id;
}

/** The `update` functions are false when there is no such row. */
export async function updateLocation(
  db: Queryable,
  id: number,
  change: Pick<Location, 'name' | 'country'>,
): Promise<boolean> {
  const result = await sql`
    update locations set name = ${change.name}, country = ${change.country} where id = ${id}`.execute(db);
  return result.numAffectedRows === 1n;
}

export async function updatePlan(
  db: Queryable,
  id: number,
  change: Offer<Pick<Plan, 'name' | 'portMbit' | 'hourlyQuanta' | 'monthlyCapQuanta'>>,
): Promise<boolean> {
  const result = await sql`
    update plans set name = ${change.name}, port_mbit = ${change.portMbit}, hourly_quanta = ${change.hourlyQuanta},
      monthly_cap_quanta = ${change.monthlyCapQuanta}, is_offered = ${change.isOffered}
    where id = ${id}`.execute(db);
  return result.numAffectedRows === 1n;
}

export async function updateImage(
  db: Queryable,
  id: number,
  change: Offer<Pick<Image, 'name'>>,
): Promise<boolean> {
  const result = await sql`
    update images set name = ${change.name}, is_offered = ${change.isOffered} where id = ${id}`.execute(db);
  return result.numAffectedRows === 1n;
}

/** The `ensure` functions make a row or bring it up to date, by its slug or name, and return its id. */
export async function ensureLocation(db: Queryable, location: Omit<Location, 'id'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into locations (slug, name, country) values (${location.slug}, ${location.name}, ${location.country})
    on conflict (slug) do update set name = excluded.name, country = excluded.country returning id`.execute(
    db,
  );
  return rows[0]!.id;
}

export async function ensureImage(
  db: Queryable,
  { slug, name, family, kind = 'system' }: Omit<Image, 'id' | 'kind'> & Partial<Pick<Image, 'kind'>>,
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into images (slug, name, family, kind) values (${slug}, ${name}, ${family}, ${kind})
    on conflict (slug) do update set name = excluded.name, family = excluded.family, kind = excluded.kind
    returning id`.execute(db);
  return rows[0]!.id;
}

/** A changed price is the price of later orders: servers keep the one they were ordered at. */
export async function ensurePlan(
  db: Queryable,
  { portMbit = null, ...plan }: Omit<Plan, 'id' | 'portMbit'> & Partial<Pick<Plan, 'portMbit'>>,
): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into plans (slug, name, vcpus, memory_mb, disk_gb, port_mbit, hourly_quanta, monthly_cap_quanta)
    values (${plan.slug}, ${plan.name}, ${plan.vcpus}, ${plan.memoryMb}, ${plan.diskGb}, ${portMbit},
            ${plan.hourlyQuanta}, ${plan.monthlyCapQuanta})
    on conflict (slug) do update set name = excluded.name, vcpus = excluded.vcpus, memory_mb = excluded.memory_mb,
      disk_gb = excluded.disk_gb, port_mbit = excluded.port_mbit, hourly_quanta = excluded.hourly_quanta,
      monthly_cap_quanta = excluded.monthly_cap_quanta
    returning id`.execute(db);
  return rows[0]!.id;
}
