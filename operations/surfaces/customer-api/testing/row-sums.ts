import type { World } from '#operations/testing/create-world.ts';

/** What every call may change: its own count, the stamp of its key. Anything else that moves is a change. */
const volatileTables = /^(usage_|sessions$|applied_migrations$|migrations$)/;

/** A digest of every table's rows, independent of their order, to detect any change by a call. */
export async function sumRows(world: Pick<World, 'database'>): Promise<Map<string, string>> {
  const { pool } = world.database;
  const { rows: tables } = await pool.query<{ name: string; isStamped: boolean }>(
    `select quote_ident(t.table_name) as name, exists (select 1 from information_schema.columns c
       where c.table_schema = 'public' and c.table_name = t.table_name and c.column_name = 'last_used_at') as "isStamped"
     from information_schema.tables t where t.table_schema = 'public' and t.table_type = 'BASE TABLE' order by 1`,
  );
  const parts = tables
    .filter(({ name }) => !volatileTables.test(name))
    .map(({ name, isStamped }) => {
      const row = isStamped ? `(to_jsonb(t) - 'last_used_at')::text` : 't::text';
      return `select '${name}' as name, count(*) || ' ' || coalesce(sum(hashtextextended(${row}, 0)), 0) as sum from ${name} t`;
    });
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
