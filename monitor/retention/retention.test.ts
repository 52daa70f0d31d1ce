import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PoolClient } from 'pg';
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { cursorsKeptMs } from '#monitor/feeds/index.ts';
import { addMinutes, addSensor, minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import { readNowMs } from '#service-kit/postgres/index.ts';
import { createRetention, type KeptTable, keptTables, type RetentionDeps } from './index.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

function createOf(of: World, change: Partial<RetentionDeps> = {}) {
  const db = () => of.database.db;
  return createRetention({
    ...{ db, tables: keptTables, sweeps: [], clock: systemClock, reporter: silentReporter },
    ...change,
  });
}

async function retain(change: Partial<RetentionDeps> = {}) {
  const retention = createOf(world, change);
  const counts = await retention.runOnce();
  await retention.loop.stop();
  return counts!;
}

async function count(table: string, where = 'true'): Promise<number> {
  const { rows } = await world.database.pool.query(`select count(*)::int as n from ${table} where ${where}`);
  return rows[0].n;
}

async function partitions(table: string): Promise<number> {
  return count('pg_inherits', `inhparent = '${table}'::regclass`);
}

/** Complete minutes in the database's last three months. */
async function threeMonthsInMinutes(): Promise<number> {
  const { rows } = await world.database.pool.query(
    "select floor(extract(epoch from svc_now() - (svc_now() - interval '3 months')) / 60)::int as n",
  );
  return rows[0].n;
}

test('NET-4.5: expired days are dropped as partitions, boundary rows are deleted, and nothing younger is', async () => {
  const sensor = await addSensor(world);
  const edge = await threeMonthsInMinutes();
  const address = '203.0.113.60';
  const minutes = [edge + 3 * 1440, edge + 30, edge - 30, 60].map((ago) => ({
    minute: minutesAgo(ago),
    address,
    rxBytes: 6,
    packets: 1,
    usage: [{ clientBytes: 6 }],
  }));
  await addMinutes(world, sensor, minutes);
  const before = await partitions('host_minutes');
  const counts = await retain();
  assert.equal(counts['host_minutes partitions']! >= 1, true);
  assert.ok((await partitions('host_minutes')) < before);
  for (const table of ['host_minutes', 'capture_minutes', 'application_facts']) {
    const kept = await world.database.pool.query(
      `select extract(epoch from minute)::int as minute from ${table} order by 1`,
    );
    assert.deepEqual(
      kept.rows.map((row) => row.minute),
      [minutesAgo(edge - 30), minutesAgo(60)],
      table,
    );
  }
});

test('NET-2.2.7: endpoint pairs are kept 24 hours', async () => {
  const sensor = await addSensor(world, 'node-2');
  const address = '203.0.113.61';
  const of = (ago: number) => ({
    minute: minutesAgo(ago),
    address,
    rxBytes: 6,
    packets: 1,
    usage: [{ clientBytes: 6 }],
  });
  await addMinutes(world, sensor, [of(23 * 60), of(2)]);
  for (const hours of [24, 25]) {
    await world.database.pool.query(
      `select ensure_fact_partition('endpoint_pairs', date_trunc('hour', svc_now()) - interval '${hours} hours', interval '1 hour')`,
    );
  }
  for (const age of ['24 hours 1 minute', '23 hours 59 minutes']) {
    await world.database.pool.query(
      `insert into endpoint_pairs (minute, site_id, capture_id, vantage, direction, client, server, name, protocol,
         evidence, client_bytes, server_bytes, packets)
       values (svc_now() - interval '${age}', 1, 1, 1, 1, '203.0.113.62', '198.51.100.9', 'x', 6,
         0, 1, 1, 1)`,
    );
  }
  await retain();
  assert.equal(await count('endpoint_pairs', "minute < svc_now() - interval '24 hours'"), 0);
  assert.equal(await count('endpoint_pairs', "client = '203.0.113.61'"), 2);
  assert.equal(await count('endpoint_pairs', "client = '203.0.113.62'"), 1);
});

test('events go after three months, those of attacks after a year', async () => {
  const add = (kind: string, age: string) =>
    world.database.pool.query(
      `insert into events (kind, occurred_at) values ('${kind}', svc_now() - interval '${age}')`,
    );
  await add('ip_conflict_opened', '3 months 1 minute');
  await add('ip_conflict_opened', '2 months');
  await add('ddos_detected', '11 months');
  await add('ddos_detected', '1 year 1 minute');
  await retain();
  assert.equal(await count('events', "kind = 'ip_conflict_opened'"), 1);
  assert.equal(await count('events', "kind = 'ddos_detected'"), 1);
});

/** A valid value of a column of this type; two rows get different ones. */
function sampleOf(type: string, n: number): string {
  const values: Readonly<Record<string, string>> = {
    text: `'x${n}'`,
    inet: `'192.0.2.${n}'`,
    cidr: `'192.0.2.${n}'`,
    'inet[]': "'{}'",
    'text[]': "'{}'",
    'bigint[]': "'{}'",
    uuid: 'gen_random_uuid()',
    jsonb: "'{}'",
    bytea: "'\\x00'",
    boolean: 'true',
    'timestamp with time zone': 'svc_now()',
  };
  if (numberTypes.has(type)) return String(n);
  const value = values[type];
  if (value === undefined)
    throw new Error(`This test has no value of the type ${type}: add one to sampleOf.`);
  return value;
}

const numberTypes = new Set(['smallint', 'integer', 'bigint', 'real', 'double precision', 'numeric']);

/** In every table with a retention, a row a second too old and one a minute too young. */
async function addRowsAroundTheEnd(own: World): Promise<void> {
  const client = await own.database.pool.connect();
  try {
    // Only the times of rows matter here, not foreign keys and other values.
    await client.query("set session_replication_role = 'replica'");
    for (const [place, kept] of keptTables.entries()) await addRowsOf(client, kept, place);
  } finally {
    // Kept after an error, it would keep the world from ending.
    client.release(true);
  }
}

async function addRowsOf(client: PoolClient, kept: KeptTable, place: number): Promise<void> {
  const { table, column, keptFor, isPartitioned, only } = kept;
  const { rows: checks } = await client.query(
    'select conname from pg_constraint where conrelid = $1::regclass and contype = $$c$$',
    [table],
  );
  for (const { conname } of checks) await client.query(`alter table ${table} drop constraint ${conname}`);
  if (isPartitioned) {
    const { rows } = await client.query(
      `select date_trunc('day', svc_now() - interval '${keptFor}') - interval '1 day' as "from", date_trunc('day', svc_now()) + interval '2 days' as until`,
    );
    await client.query(
      `create table test_part_${place} partition of ${table} for values from ('${rows[0].from.toISOString()}') to ('${rows[0].until.toISOString()}')`,
    );
  }
  const { rows: columns } = await client.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and not attisdropped and attidentity = '' and attgenerated = ''
       and attname <> $2 and attnotnull and not atthasdef`,
    [table, column],
  );
  const kind = only?.includes("= 'ddos_detected'") ? "'ddos_detected'" : "'ip_conflict_opened'";
  for (const [n, age] of [
    [1, `interval '${keptFor}' + interval '1 second'`],
    [2, `interval '${keptFor}' - interval '1 minute'`],
  ] as const) {
    const values = columns.map(({ name, type }) =>
      table === 'events' && name === 'kind' ? kind : sampleOf(type, n + 2 * place),
    );
    await client.query(
      `insert into ${table} (${[column, ...columns.map(({ name }) => name)].join(', ')}) values (svc_now() - (${age}), ${values.join(', ')})`,
    );
  }
}

test('NET-8.R1, NET-8.R2, NET-8.R3: in every table with a retention, rows a second too old are deleted and rows a minute too young stay', async () => {
  await using own = await createWorld();
  await addRowsAroundTheEnd(own);
  const retention = createOf(own);
  await retention.runOnce();
  await retention.loop.stop();
  assert.ok((await retention.state()).lastSuccessAtMs);
  for (const { table, column, keptFor, only } of keptTables) {
    const { rows } = await own.database.pool.query(
      `select count(*)::int as n, count(*) filter (where ${column} < svc_now() - interval '${keptFor}')::int as old
       from ${table} where ${only ?? 'true'}`,
    );
    assert.deepEqual([table, rows[0]], [table, { n: 1, old: 0 }]);
  }
});

test('NET-8.R1, NET-8.R2, NET-8.R3, NET-8.R4: pairs of endpoints and tokens are kept for a day, port scans for seven, attacks for a year, the rest for three months', () => {
  const ofOneDay = [
    'appended_uploads',
    'endpoint_pairs',
    'minute_verdicts',
    'pair_hours',
    'pair_name_hours',
    'pair_tens',
    'usage_tens',
    'name_pair_minutes',
    'name_pair_tens',
    'name_pair_hours',
  ];
  // Suspects, destinations, seconds and transitions are deleted with the rows of these.
  const ofAttacks = ['incidents', 'incident_observations', 'site_correlations', 'hand_off_actions'];
  const ofScans = [
    'scan_attempts',
    'scan_identifications',
    'scan_observations',
    'scan_requests',
    'vulnerability_noted',
    'vulnerability_services',
  ];
  for (const { table, only, keptFor } of keptTables) {
    const isAttack = only === "kind = 'ddos_detected'" || ofAttacks.includes(table);
    const short = ofOneDay.includes(table) ? '24 hours' : ofScans.includes(table) ? '7 days' : '3 months';
    const expected = isAttack ? '1 year' : short;
    assert.deepEqual([table, only, keptFor], [table, only, expected]);
  }
});

test('NET-8: expired data is deleted every hour', async () => {
  const clock = createTestClock(0);
  const times: number[] = [];
  const run = async () => {
    times.push(clock.nowMs());
    return 0;
  };
  const { loop } = createOf(world, { clock, tables: [], sweeps: [{ name: 'seen', run }] });
  await loop.start();
  for (const ms of [0, 3_599_999, 1]) {
    await clock.advance(ms);
    while (clock.waiting() === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await loop.stop();
  assert.deepEqual(times, [0, 3_600_000]);
});

test('NET-2.9: unused cursors are kept for two days', async () => {
  assert.equal(cursorsKeptMs, 2 * 86_400_000);
  const times: number[] = [];
  const run = async (nowMs: number) => times.push(nowMs);
  const fromMs = await readNowMs(world.database.db);
  const counts = await retain({ sweeps: [{ name: 'swept', run }] });
  assert.ok(times[0]! >= fromMs && times[0]! <= (await readNowMs(world.database.db)), `${times}`);
  assert.equal(counts.swept, 1);
});

const keptEvents: KeptTable = {
  ...{ table: 'events', column: 'occurred_at', keptFor: '3 months', isPartitioned: false },
};
const addEvent = (kind: string, age: string) =>
  world.database.pool.query(
    `insert into events (kind, occurred_at) values ('${kind}', svc_now() - interval '${age}')`,
  );

test('the hook of a table runs before its rows are deleted, and rows that it did not see stay', async () => {
  await addEvent('with_object', '3 months 1 minute');
  let seen = 0;
  const beforeRemoval = async (beforeMs: number) => {
    seen = await count('events', `kind = 'with_object' and occurred_at < to_timestamp(${beforeMs / 1000})`);
    // Expires after the moment of which the hook was told.
    await world.database.pool.query(
      `insert into events (kind, occurred_at) values ('with_object', to_timestamp(${beforeMs / 1000}))`,
    );
  };
  await retain({ tables: [{ ...keptEvents, beforeRemoval }] });
  assert.deepEqual([seen, await count('events', "kind = 'with_object'")], [1, 1]);
});

test('rows stay while the hook of their table fails, the run reports the error, and other tables are cleaned', async () => {
  await addEvent('unremovable', '3 months 1 minute');
  await addEvent('usual', '3 months 1 minute');
  const beforeRemoval = async () => {
    throw new Error('the storage does not answer');
  };
  const failing = { ...keptEvents, only: "kind = 'unremovable'", beforeRemoval };
  const retention = createOf(world, { tables: [failing, { ...keptEvents, only: "kind = 'usual'" }] });
  await retention.runOnce().catch(() => {});
  await retention.loop.stop();
  assert.equal((await retention.state()).lastError, 'the storage does not answer');
  const left = () => count('events', "kind in ('unremovable', 'usual')");
  assert.equal(await left(), 1);
  await retain({ tables: [{ ...failing, beforeRemoval: async () => {} }] });
  assert.equal(await left(), 0);
});

/** Tables that grow with time and are limited elsewhere, or whose rows people create and delete. */
const keptElsewhere: Readonly<Record<string, string>> = {
  inbox_uploads: 'the inbox prunes its tombstones after two days',
  feed_cursors: 'the feeds delete cursors that were unused for two days',
  feed_set_aside: 'the feeds delete them with their cursors',
  live_windows: 'the live store has its own limits',
  audit_entries: 'the same loop, after a year; the database refuses earlier: service-kit/audit',
  jobs: 'the runner removes finished ones',
  sessions: 'sign-in removes expired ones',
  sign_in_failures: 'sign-in removes old ones',
};

test('NET-8: every table with times has a retention, so that none grows without limit', async () => {
  const { rows } = await world.database.pool.query(
    `select c.relname as name, c.relkind as kind, c.relkind = 'p' or exists (select 1 from pg_attribute a
        where a.attrelid = c.oid and a.attname = any(array['minute', 'hour', 'occurred_at', 'received_at', 'resolved_at', 'finished_at', 'started_at'])) as is_timed
     from pg_class c where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace`,
  );
  const named = new Set(keptTables.map((kept) => kept.table));
  const perSubject = new Set(['sensor_conditions', 'site_minute_marks', 'unjudged_minutes']);
  for (const { name, is_timed } of rows) {
    if (!is_timed || perSubject.has(name)) continue;
    assert.ok(named.has(name) || keptElsewhere[name], `${name} has no retention`);
  }
});

test('every table of facts has a retention, so that none grows without limit', async () => {
  const { rows } = await world.database.pool.query(
    `select relname as name from pg_class where relkind = 'p' and relnamespace = 'public'::regnamespace`,
  );
  const named = new Set(keptTables.filter((kept) => kept.isPartitioned).map((kept) => kept.table));
  for (const { name } of rows) assert.ok(named.has(name), `${name} has no retention`);
});
