/** Changes of servers that operations told of, and where its list was read to. */
import { sql } from 'kysely';
import type { InventoryChange } from '#contracts/admin-api/inventory-changes.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Null: nothing of this connection's list was read. */
export async function readChangesCursor(db: Queryable, revision: number): Promise<string | null> {
  const { rows } = await sql<{ after: string | null }>`
    select changes_after as after from inventory_state where changes_revision = ${revision}`.execute(db);
  return rows[0]?.after ?? null;
}

export async function writeChangesCursor(trx: Queryable, revision: number, after: string): Promise<void> {
  await sql`update inventory_state set changes_after = ${after}, changes_revision = ${revision}`.execute(trx);
}

/** Adds those that are not there yet; returns how many. */
export async function addChanges(trx: Queryable, changes: readonly InventoryChange[]): Promise<number> {
  if (changes.length === 0) return 0;
  const { rows } = await sql`
    insert into vm_changes (id, cluster_id, vm_id, kind, occurred_at)
    select c.id, c.cluster_id, c.virtual_machine_id, c.kind, c.at
    from jsonb_to_recordset(${JSON.stringify(changes)}::jsonb)
      as c(id uuid, cluster_id bigint, virtual_machine_id bigint, kind text, at timestamptz)
    on conflict (id) do nothing returning 1`.execute(trx);
  return rows.length;
}
