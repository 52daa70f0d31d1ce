/** Servers as traffic is named by: whose they are, where they are, and whether their owner shows it. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';

export interface TrafficServer {
  id: number;
  name: string;
  tenantId: number;
  tenantName: string;
  clusterId: number;
  clusterName: string;
  node: string | null;
  isDestroyed: boolean;
  createdMs: number;
  /** False where the owner turned the protection views off. */
  isShown: boolean;
}

/** Servers of the scope that exist, and with `destroyedSince` those that were destroyed after it. */
export async function listTrafficServers(
  db: Queryable,
  scope: Scope,
  destroyedSince: Date | null,
): Promise<TrafficServer[]> {
  const owned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<TrafficServer>`
    select s.id, s.name, s.tenant_id as "tenantId", t.name as "tenantName", s.cluster_id as "clusterId",
      c.name as "clusterName", s.node,
      (extract(epoch from s.created_at) * 1000)::float8 as "createdMs",
      s.provisioning_state = 'deleted' as "isDestroyed", coalesce(p.views_on, true) as "isShown"
    from servers s join tenants t on t.id = s.tenant_id join clusters c on c.id = s.cluster_id
    left join protect_settings p on p.server_id = s.id
    where ${owned} and (s.provisioning_state <> 'deleted' or s.deleted_at > ${destroyedSince}::timestamptz)
    order by s.id`.execute(db);
  return rows;
}
