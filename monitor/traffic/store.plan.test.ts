import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Kysely, type LogEvent, PostgresDialect } from 'kysely';
import { nameApplication } from '#monitor/applications/index.ts';
import { createFactStore } from '#monitor/facts/index.ts';
import { captureMinute, createMonitorWorld, createSpool, host, testMinute } from '#monitor/testing/index.ts';
import { withCamelNames } from '#service-kit/postgres/database.ts';

/** An address is read for every allocation at every tick, so the cost must not grow with other data. */
test("an address's hour is read by its key, from its day's partitions alone", async () => {
  await using world = await createMonitorWorld();
  const day = 86_400;
  const spool = createSpool();
  for (const minute of [testMinute, testMinute - day, testMinute - 2 * day, testMinute - 3 * day]) {
    await world.send(spool.upload([captureMinute({ minute, hosts: [host('192.0.2.10', 1, 1)] })]));
  }
  await world.inbox.drain();
  const client = await world.database.pool.connect();
  await client.query('set enable_seqscan = off');
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(
    `explain (costs off) select * from strongest_host_minutes($1, to_timestamp($2), to_timestamp($3)) where address = $4`,
    [world.siteId, testMinute, testMinute + 60, '192.0.2.10'],
  );
  client.release();
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  const partitions = new Set(plan.match(/(host|capture)_minutes_p\d{8}(?= )/g));
  assert.equal(partitions.size, 2, plan);
  assert.match(plan, /Index Cond: \(\(site_id = '?\d+'?(::bigint)?\) AND \(address = /, plan);
});

interface PlanNode {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Join Filter'?: number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** Rows that a plan looked at. */
function rowsOf(node: PlanNode): number {
  const rows =
    node['Actual Rows'] + (node['Rows Removed by Join Filter'] ?? 0) + (node['Rows Removed by Filter'] ?? 0);
  return rows * node['Actual Loops'] + (node.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), 0);
}

test('days of an address cost by their minutes, not by their square', async () => {
  await using world = await createMonitorWorld();
  const { pool } = world.database;
  const minutes = 1440;
  await world.send(createSpool().upload([captureMinute({ hosts: [host('192.0.2.10', 1, 1)] })]));
  await world.inbox.drain();
  for (const table of ['host_minutes', 'capture_minutes']) {
    for (const day of [0, 1, 2])
      await pool.query(`select ensure_fact_partition($1, to_timestamp($2), interval '1 day')`, [
        table,
        (Math.floor(testMinute / 86_400) + day) * 86_400,
      ]);
    const { rows } = await pool.query<{ name: string }>(
      `select string_agg(quote_ident(column_name), ', ') as name from information_schema.columns
       where table_name = $1 and column_name <> 'minute' and is_generated = 'NEVER'`,
      [table],
    );
    const columns = rows[0]!.name;
    await pool.query(
      `insert into ${table} (minute, ${columns}) select minute + make_interval(mins => n), ${columns}
       from ${table}, generate_series(1, $1) n where minute = to_timestamp($2)`,
      [minutes - 1, testMinute],
    );
  }
  const statements: { sql: string; parameters: readonly unknown[] }[] = [];
  const db = new Kysely({
    dialect: new PostgresDialect({ pool: withCamelNames(pool) }),
    log: ({ query: { sql, parameters } }: LogEvent) => void statements.push({ sql, parameters }),
  });
  const facts = createFactStore({ db: () => db as typeof world.database.db, nameApplication });
  const range = { siteId: world.siteId, fromMinute: testMinute, toMinute: testMinute + minutes * 60 };
  const { sightings } = await facts.readAddress({ ...range, address: '192.0.2.10' });
  assert.equal(sightings.length, minutes);
  let looked = 0;
  const client = await pool.connect();
  await client.query('begin');
  for (const { sql, parameters } of statements) {
    // Settings of the reading transaction hold for the plans as well.
    if (sql.includes('set_config')) await client.query(sql, [...parameters]);
    if (!sql.includes('host_minutes')) continue;
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (analyze, format json) ${sql}`,
      [...parameters],
    );
    looked += rowsOf(rows[0]!['QUERY PLAN'][0].Plan);
  }
  await client.query('rollback');
  client.release();
  assert.ok(looked > minutes && looked < 100 * minutes, `${looked} rows for ${minutes} minutes`);
});
