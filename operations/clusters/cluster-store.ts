/** Every statement on clusters. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Nodes of one location that are run by the same kind of hypervisor. */
export interface Cluster {
  id: number;
  locationId: number;
  name: string;
  driver: string;
}

/** Oldest first; all of them, or those of one location. */
export async function listClusters(db: Queryable, locationId?: number): Promise<Cluster[]> {
  const { rows } = await sql<Cluster>`
    select id, location_id as "locationId", name, driver from clusters
    where ${locationId ?? null}::bigint is null or location_id = ${locationId ?? null} order by id`.execute(
    db,
  );
  return rows;
}

/** Makes a cluster or changes the driver of the one of that name; returns its id. */
export async function ensureCluster(db: Queryable, cluster: Omit<Cluster, 'id'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into clusters (location_id, name, driver) values (${cluster.locationId}, ${cluster.name}, ${cluster.driver})
    on conflict (name) do update set driver = excluded.driver returning id`.execute(db);
  return rows[0]!.id;
}

/** The cluster's row, locked so that two changes of what it has are not made beside each other; false when there is none. */
export async function lockCluster(tx: Queryable, clusterId: number): Promise<boolean> {
  const { rows } = await sql`select 1 from clusters where id = ${clusterId} for no key update`.execute(tx);
  return rows.length === 1;
}
