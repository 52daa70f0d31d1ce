/** The sensors that have a plan. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PlanSubject } from './plan-section.ts';

export async function listSubjects(db: Queryable, siteId: number | null): Promise<PlanSubject[]> {
  const { rows } = await sql<PlanSubject>`
    select id as "sensorId", site_id as "siteId",
      json_build_object('name', node, 'clusterId', cluster_id) as node
    from sensors where revoked_at is null and (${siteId}::bigint is null or site_id = ${siteId}::bigint)`.execute(
    db,
  );
  return rows;
}
