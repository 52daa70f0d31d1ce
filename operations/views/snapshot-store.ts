/** Snapshots with what their owner sees: the server, and the image that its disk came from. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';

/** A copy of the disk of a server. */
export interface Snapshot {
  id: number;
  tenantId: number;
  serverId: number;
  serverName: string;
  locationId: number;
  /** That makes it. */
  actionId: number;
  name: string;
  state: 'creating' | 'ready';
  /** Of the server at that time. */
  imageId: number;
  imageSlug: string;
  imageName: string;
  diskGb: number;
  /** What it takes at the node; null until it is complete. */
  sizeBytes: number | null;
  createdAt: Date;
}

/** Those of the scope, oldest first: of one server, or the one of this id, or all. */
export async function listSnapshots(
  db: Queryable,
  scope: Scope,
  { serverId = null, id = null }: { serverId?: number | null; id?: number | null } = {},
): Promise<Snapshot[]> {
  const isOwned = scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;
  const { rows } = await sql<Snapshot>`
    select c.id, s.tenant_id, c.server_id, s.name as server_name, k.location_id, c.action_id, c.name, c.state,
      i.id as image_id, i.slug as image_slug, i.name as image_name, c.disk_gb, c.size_bytes, c.created_at
    from server_snapshots c join servers s on s.id = c.server_id join clusters k on k.id = s.cluster_id join images i on i.id = c.image_id
    where ${isOwned} and s.provisioning_state <> 'deleted' and c.state <> 'deleting'
      and (${serverId}::bigint is null or c.server_id = ${serverId}) and (${id}::bigint is null or c.id = ${id})
    order by c.id`.execute(db);
  return rows;
}

export async function findSnapshot(db: Queryable, scope: Scope, id: number): Promise<Snapshot | null> {
  return (await listSnapshots(db, scope, { id }))[0] ?? null;
}
