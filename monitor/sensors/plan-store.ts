/** Which site and node a plan is of. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PlanNode, PlanSubject } from './plan-section.ts';

export interface StoredScope {
  localCidrs: string[];
  node: PlanNode | null;
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

export async function listSubjects(db: Queryable, siteId: number | null): Promise<PlanSubject[]> {
  const { rows } = await sql<PlanSubject>`
    select id as "sensorId", site_id as "siteId",
      json_build_object('name', node, 'clusterId', cluster_id) as node
    from sensors where revoked_at is null and (${siteId}::bigint is null or site_id = ${siteId}::bigint)`.execute(
    db,
  );
  return rows;
}
