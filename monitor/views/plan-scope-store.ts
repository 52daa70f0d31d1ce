/** Of which site and node a sensor's plan is, in one statement: every sensor asks every 30 seconds. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface StoredScope {
  localCidrs: string[];
  node: { name: string; clusterId: number | null } | null;
}

/** Null when there is no such site. A sensor of another site has no node here. */
export async function readPlanScope(
  reader: Queryable,
  siteId: number,
  sensorId: number | null,
): Promise<StoredScope | null> {
  const { rows } = await sql<StoredScope>`
    select t.local_cidrs as "localCidrs",
      case when s.id is null then null else json_build_object('name', s.node, 'clusterId', s.cluster_id) end as node
    from sites t left join sensors s on s.site_id = t.id and s.id = ${sensorId}::bigint
    where t.id = ${siteId}`.execute(reader);
  return rows[0] ?? null;
}
