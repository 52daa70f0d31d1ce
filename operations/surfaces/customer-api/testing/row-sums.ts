import type { World } from '#operations/testing/create-world.ts';

/** What every call may change: its own count, the stamp of its key. Anything else that moves is a change. */
const volatileTables = /^(usage_|sessions$|applied_migrations$|migrations$)/;

/** A digest of every table's rows, so that a call that changed anything anywhere is seen. */
export async function sumRows(world: Pick<World, 'database'>): Promise<Map<string, string>> {
  const { pool } = world.database;
  const { rows: tables } = await pool.query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE' order by 1`,
  );
  const parts = tables
    .filter(({ name }) => !volatileTables.test(name))
    .map(
      ({ name }) => `select '${name}' as name,
        md5(coalesce(string_agg((to_jsonb(t) - 'last_used_at')::text, ' ' order by to_jsonb(t)::text), '')) as sum from ${name} t`,
    );
  const { rows } = await pool.query<{ name: string; sum: string }>(parts.join(' union all '));
  return new Map(rows.map((row) => [row.name, row.sum]));
}

/** Tables that are not as they were. */
export function changedTables(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): string[] {
  return [...after].filter(([name, sum]) => before.get(name) !== sum).map(([name]) => name);
}
