import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createLive, createPostgresStore } from '#monitor/live/index.ts';
import { addMinutes, addSensor, minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import { createRetention } from './index.ts';
import { keptTables } from './kept.ts';
import { readNowMs } from './store.ts';

let world: World;
before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());

async function retain() {
  const retention = createRetention({
    db: () => world.database.db,
    feeds: world.createFeed(),
    inbox: { prune: async () => 0 },
    live: createLive({
      store: createPostgresStore(() => world.database.db, { historySeconds: 3600, historyMax: 100 }),
    }),
    clock: systemClock,
    reporter: silentReporter,
  });
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

/** Whole minutes before now at which something three months old expires, by the calendar of the database. */
async function threeMonthsInMinutes(): Promise<number> {
  const { rows } = await world.database.pool.query(
    "select floor(extract(epoch from svc_now() - (svc_now() - interval '3 months')) / 60)::int as n",
  );
  return rows[0].n;
}

test('NET-4.5: expired days go as whole partitions, the boundary by its rows, and nothing that is younger', async () => {
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

/** A value that a column of this type takes; two rows differ. */
function sampleOf(type: string, n: number): string {
  const values: Readonly<Record<string, string>> = {
    text: `'x${n}'`,
    inet: `'192.0.2.${n}'`,
    'inet[]': "'{}'",
    uuid: 'gen_random_uuid()',
    jsonb: "'{}'",
    bytea: "'\\x00'",
    boolean: 'true',
    'timestamp with time zone': 'svc_now()',
  };
  return values[type] ?? String(n);
}

test('NET-8.R1, NET-8.R2, NET-8.R3: of every table of the retention table, what is a second too old goes and what is a minute too young stays', async () => {
  await using own = await createWorld();
  const { pool } = own.database;
  const client = await pool.connect();
  // Only the times of the rows matter here; what they refer to and what else they hold does not.
  await client.query("set session_replication_role = 'replica'");
  for (const [place, kept] of keptTables.entries()) {
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
  client.release(true);
  const retention = createRetention({
    db: () => own.database.db,
    feeds: own.createFeed(),
    inbox: { prune: async () => 0 },
    live: createLive({
      store: createPostgresStore(() => own.database.db, { historySeconds: 3600, historyMax: 100 }),
    }),
    clock: systemClock,
    reporter: silentReporter,
  });
  await retention.runOnce();
  await retention.loop.stop();
  assert.ok((await retention.state()).lastSuccessAtMs);
  for (const { table, column, keptFor, only } of keptTables) {
    const { rows } = await pool.query(
      `select count(*)::int as n, count(*) filter (where ${column} < svc_now() - interval '${keptFor}')::int as old
       from ${table} where ${only ?? 'true'}`,
    );
    assert.deepEqual([table, rows[0]], [table, { n: 1, old: 0 }]);
  }
});

test('NET-8.R1, NET-8.R2, NET-8.R3: pairs of endpoints are kept for a day, attacks for a year, the rest for three months', () => {
  const ofPairs = ['endpoint_pairs', 'pair_hours', 'name_pair_minutes', 'name_pair_tens', 'name_pair_hours'];
  for (const { table, only, keptFor } of keptTables) {
    const isAttack = only === "kind = 'ddos_detected'";
    const expected = isAttack ? '1 year' : ofPairs.includes(table) ? '24 hours' : '3 months';
    assert.deepEqual([table, only, keptFor], [table, only, expected]);
  }
});

test('NET-2.9: cursors that nothing visited are kept for two days', async () => {
  const cutoffs: number[] = [];
  const retention = createRetention({
    db: () => world.database.db,
    feeds: {
      async forgetCursors(beforeMs) {
        cutoffs.push(beforeMs);
        return 0;
      },
    },
    inbox: { prune: async () => 0 },
    live: { prune: async () => 0 },
    clock: systemClock,
    reporter: silentReporter,
  });
  const fromMs = await readNowMs(world.database.db);
  await retention.runOnce();
  await retention.loop.stop();
  const [cutoffMs] = cutoffs;
  const twoDaysMs = 2 * 86_400_000;
  assert.ok(
    cutoffMs! >= fromMs - twoDaysMs && cutoffMs! <= (await readNowMs(world.database.db)) - twoDaysMs,
    `${cutoffMs}`,
  );
});

/** Tables that grow with time and have a line elsewhere, or rows that somebody made and only somebody may remove. */
const keptElsewhere: Readonly<Record<string, string>> = {
  inbox_uploads: 'the inbox prunes its tombstones after two days',
  feed_cursors: 'the feeds forget cursors that nothing visited for two days',
  feed_set_aside: 'the feeds forget them with their cursors',
  live_windows: 'the live store bounds itself',
  audit_entries: 'the same loop, after a year; the database refuses earlier: service-kit/audit',
  jobs: 'the runner removes finished ones',
  sessions: 'sign-in removes expired ones',
  sign_in_failures: 'sign-in removes old ones',
};

test('NET-8: a table with rows of a time has a line, so that none grows for ever', async () => {
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

test('every table of facts is named, so that none grows for ever', async () => {
  const { rows } = await world.database.pool.query(
    `select relname as name from pg_class where relkind = 'p' and relnamespace = 'public'::regnamespace`,
  );
  const named = new Set(keptTables.filter((kept) => kept.isPartitioned).map((kept) => kept.table));
  for (const { name } of rows) assert.ok(named.has(name), `${name} has no retention`);
});
