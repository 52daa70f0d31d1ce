/** Servers as traffic is named by: whose they are, where they are, and whether their owner shows it. */
import { type RawBuilder, sql } from 'kysely';
import { asColumns, type Columns, fromColumns, type Queryable } from '#service-kit/postgres/index.ts';
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

/** Customers and clusters are far fewer than servers: their names are read once and not with each of their servers. */
type ServerRow = Omit<TrafficServer, 'tenantName' | 'clusterName'>;
interface NameRow {
  id: number;
  name: string;
}
const serverColumns = 'id name tenant_id cluster_id node created_ms is_destroyed is_shown'.split(' ');

/** Servers of the scope that exist, and with `destroyedSince` those that were destroyed after it. */
export async function listTrafficServers(
  db: Queryable,
  scope: Scope,
  destroyedSince: Date | null,
): Promise<TrafficServer[]> {
  const owned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const listed = sql`
    select s.id, s.name, s.tenant_id, s.cluster_id, s.node,
      (extract(epoch from s.created_at) * 1000)::float8 as created_ms,
      s.provisioning_state = 'deleted' as is_destroyed, coalesce(p.views_on, true) as is_shown
    from servers s left join protect_settings p on p.server_id = s.id
    where ${owned} and (s.provisioning_state <> 'deleted' or s.deleted_at > ${destroyedSince}::timestamptz)
    order by s.id`;
  const names = (table: 'tenants' | 'clusters', ids: RawBuilder<unknown>) =>
    asColumns(sql`select id, name from ${sql.table(table)} where id in (${ids})`, ['id', 'name']);
  const { rows } = await sql<{ servers: Columns; tenants: Columns; clusters: Columns }>`
    with listed as materialized (${listed})
    select ${asColumns(sql`select * from listed`, serverColumns)} as servers,
      ${names('tenants', sql`select tenant_id from listed`)} as tenants,
      ${names('clusters', sql`select cluster_id from listed`)} as clusters`.execute(db);
  const { servers, tenants, clusters } = rows[0]!;
  const nameOf = (columns: Columns) =>
    new Map(fromColumns<NameRow>(columns).map(({ id, name }) => [id, name]));
  const [tenantNames, clusterNames] = [nameOf(tenants), nameOf(clusters)];
  return fromColumns<ServerRow & Partial<TrafficServer>>(servers).map((server) => {
    server.tenantName = tenantNames.get(server.tenantId)!;
    server.clusterName = clusterNames.get(server.clusterId)!;
    return server as TrafficServer;
  });
}
