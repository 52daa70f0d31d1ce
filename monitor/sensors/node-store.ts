/** Which sensors a node has. A node has one; installations of before may have more. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PlanNode } from './plan-section.ts';

export interface Occupant {
  id: number;
  hostName: string;
}

/** Sensors on this node that may still send. A cluster that is not known may be any of the site's. */
export async function listOccupants(
  db: Queryable,
  siteId: number,
  node: PlanNode,
  exceptSensorId: number | null = null,
): Promise<Occupant[]> {
  const { rows } = await sql<Occupant>`
    select id, host_name as "hostName" from sensors
    where site_id = ${siteId} and revoked_at is null and node = ${node.name}
      and coalesce(cluster_id = ${node.clusterId}::bigint, true) and id is distinct from ${exceptSensorId}::bigint
    order by id`.execute(db);
  return rows;
}
