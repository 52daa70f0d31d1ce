/**
 * The databases of a demo installation of an earlier version, upgraded: `operations.sql` and `monitor.sql` hold its rows.
 *
 * What a migration changes on purpose is listed here; every other column of every row has to stay as it was.
 */
// Own process: it checks passwords as the product stores them.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type pg from 'pg';
import { silentReporter } from '#common/reporter/index.ts';
import { createOperators } from '#monitor/operators/index.ts';
import { createSensors } from '#monitor/sensors/index.ts';
import { createAccounts } from '#operations/accounts/index.ts';
import { createApiKeys } from '#operations/api-keys/index.ts';
import { createPost } from '#service-kit/mail/index.ts';
import { createEarlierDatabase, type EarlierDatabase } from '#service-kit/testing/earlier-database.ts';

const post = createPost({
  smtp: null,
  folder: null,
  baseUrl: () => 'http://svc.test',
  reporter: silentReporter,
});

/** Makes the database of the earlier version with its rows. Versions before a migration's number have those below it. */
async function createInstallation(program: 'operations' | 'monitor'): Promise<EarlierDatabase> {
  const database = await createEarlierDatabase(program, '0110', '0010');
  const rows = await readFile(new URL(`./${program}.sql`, import.meta.url), 'utf8');
  const client = await database.pool.connect();
  try {
    // The rows are whole as they stand; triggers and foreign keys would ask for an order.
    await client.query('begin; set local session_replication_role = replica');
    // Migrations make the rows of tables that have one only.
    for (const [, table] of rows.matchAll(/^insert into (\w+)/gm))
      await client.query(`delete from "${table}"`);
    await client.query(rows);
    await client.query('commit');
  } finally {
    client.release();
  }
  return database;
}

/** Every row of the tables with rows, as a list of JSON texts in a fixed order. */
async function readRows(pool: pg.Pool): Promise<Map<string, Record<string, unknown>[]>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
     and not relispartition and relname <> 'schema_migrations' order by 1`,
  );
  const found = new Map<string, Record<string, unknown>[]>();
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(t) as row from "${name}" t order by to_jsonb(t)::text`,
    );
    if (rows.length > 0)
      found.set(
        name,
        rows.map(({ row }) => row),
      );
  }
  return found;
}

interface Changes {
  /** Former name of a table → its name. */
  renamed: Record<string, string>;
  /** Columns, as `table.column` by the former names, that a migration drops or fills anew. */
  columns: readonly string[];
}

/** What of the former rows is gone or changed, beside what a migration changes on purpose. */
function findLosses(
  before: Map<string, Record<string, unknown>[]>,
  after: Map<string, Record<string, unknown>[]>,
  { renamed, columns }: Changes,
): string[] {
  const losses: string[] = [];
  for (const [table, rows] of before) {
    const kept = Object.keys(rows[0]!).filter((column) => !columns.includes(`${table}.${column}`));
    const textOf = (row: Record<string, unknown>) => JSON.stringify(kept.map((column) => row[column]));
    const left = new Set((after.get(renamed[table] ?? table) ?? []).map(textOf));
    for (const row of rows) if (!left.has(textOf(row))) losses.push(`${table}: ${textOf(row)}`);
  }
  return losses;
}

async function upgrade(database: EarlierDatabase, changes: Changes): Promise<string[]> {
  const before = await readRows(database.pool);
  assert.ok(before.size > 30, 'the installation has rows in most tables');
  await database.upgrade();
  return findLosses(before, await readRows(database.pool), changes);
}

test('operations keeps every row of an earlier installation, its logins and its API keys', async () => {
  await using database = await createInstallation('operations');
  const losses = await upgrade(database, { renamed: {}, columns: [] });
  assert.deepEqual(losses, []);
  const { rows: scans } = await database.pool.query(`
    select (select count(*) > 0 from protect_minutes) as "hasRows", max(own_scan_inbound_bytes + own_scan_outbound_bytes)::int as scanned
    from (select own_scan_inbound_bytes, own_scan_outbound_bytes from protect_minutes
      union all select own_scan_inbound_bytes, own_scan_outbound_bytes from protect_usage_hours) minutes`);
  assert.deepEqual(scans, [{ hasRows: true, scanned: 0 }], 'nothing is known of scans of before');
  const accounts = createAccounts({
    db: () => database.db,
    post,
    revokeKeysOf: async () => {},
    releaseKeptAddresses: async () => {},
  });
  const customer = await accounts.signIn('customer@demo.example', '76b65ce174225e73');
  assert.equal(customer?.email, 'customer@demo.example');
  const keys = createApiKeys({
    ...{ db: () => database.db, pool: () => database.pool, reporter: silentReporter },
    gateway: 'simulated',
  });
  const found = await keys.verifyKey('svc_g4kbu253a1jq1ogs_qahDtJiignKbd1Pvp5wGUrajNvxSxp2qiO29zeHN0Fs');
  assert.ok(found, 'a key of before is valid');
});

test('the monitor keeps every row of an earlier installation, its logins and its sensors', async () => {
  await using database = await createInstallation('monitor');
  const losses = await upgrade(database, {
    renamed: { delivery_cursors: 'feed_cursors' },
    columns: [
      'delivery_cursors.allocation_id',
      'delivery_cursors.assigned_at',
      'delivery_cursors.delivered_until',
      'delivery_cursors.swept_until',
      'feed_states.latest_acknowledged_minute',
      'notice_secret.secret',
      'operations_connection.token',
      'sensors.credential_id',
      'sensors.credential_digest',
    ],
  });
  assert.deepEqual(losses, []);
  const { rows: scans } = await database.pool.query(
    'select count(*) > 0 as "hasRows", max(own_scan_rx_bytes + own_scan_tx_bytes + own_scan_packets)::int as scanned from host_minutes',
  );
  assert.deepEqual(scans, [{ hasRows: true, scanned: 0 }], 'nothing is known of scans of before');
  const { rows: moved } = await database.pool.query(`
    select item, (position->>'sweptUntil')::bigint = extract(epoch from timestamptz '2026-11-22 22:33Z') as is_same,
      (select latest_acknowledged_at = '2026-11-22 22:36Z' from feed_states) as has_newest,
      (select convert_from(clear_token, 'UTF8') like 'svcadm_m6rd%' from operations_connection) as has_token,
      (select length(clear_secret) > 0 from notice_secret) as has_secret
    from feed_cursors order by item limit 1`);
  assert.deepEqual(moved, [
    {
      item: '1 2026-11-22T22:32:45.397562Z',
      is_same: true,
      has_newest: true,
      has_token: true,
      has_secret: true,
    },
  ]);
  const operators = createOperators({ db: () => database.db, post });
  const operator = await operators.checkPassword('operator@monitor.example', '677ff56f43e592f4');
  assert.equal(operator?.email, 'operator@monitor.example');
  const sensors = createSensors({ db: () => database.db, reader: () => database.db, sections: [] });
  const sensor = await sensors.authenticate(
    'svcsen_a29rgn85d1o2iou5_D7Qw2p8XTBj-Ovys0yGP1pmZBwdi8phSF1JkMnsq-hs',
  );
  assert.ok(sensor, 'an enrolled sensor goes on with its credential');
});
