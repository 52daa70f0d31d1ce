/** Every statement on differences between nodes and what is sold. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface Difference {
  nodeId: number;
  guest: string;
  /** `stray`: no server is placed there under this name. */
  kind: 'missing' | 'stray' | 'size' | 'interfaces';
  detail: string;
}

export interface Drift extends Difference {
  seenAt: Date;
}

/** Keeps what was found on these nodes; one that was there before keeps its time, one that is not found any more goes. */
export async function replaceDrifts(
  tx: Queryable,
  nodeIds: readonly number[],
  found: readonly Difference[],
): Promise<void> {
  const columns = sql`unnest(${found.map((one) => one.nodeId)}::bigint[], ${found.map((one) => one.guest)}::text[],
    ${found.map((one) => one.kind)}::text[], ${found.map((one) => one.detail)}::text[]) as f (node_id, guest, kind, detail)`;
  await sql`delete from guest_drifts d where d.node_id = any(${[...nodeIds]}::bigint[]) and not exists (
    select 1 from ${columns} where f.node_id = d.node_id and f.guest = d.guest and f.kind = d.kind)`.execute(
    tx,
  );
  await sql`insert into guest_drifts (node_id, guest, kind, detail) select * from ${columns}
    on conflict (node_id, guest, kind) do update set detail = excluded.detail`.execute(tx);
}

/** Of one node or of all; the oldest first. */
export async function listDrifts(db: Queryable, nodeId: number | null): Promise<Drift[]> {
  const { rows } = await sql<Drift>`
    select node_id, guest, kind, detail, seen_at from guest_drifts
    where ${nodeId}::bigint is null or node_id = ${nodeId} order by seen_at, guest, kind`.execute(db);
  return rows;
}
