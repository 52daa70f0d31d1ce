// Slow: makes engines of ClickHouse and goes through every kind of statement.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { keptFacts } from '#monitor/retention/index.ts';
import { captureMinute, createMonitorWorld, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { openScope } from '../contract/control-scope.ts';
import { createClickhouseFacts } from './clickhouse-facts.ts';
import { createEngine } from './engine-store.ts';
import { ch, number, plain, texts, toStatement } from './statement.ts';
import { migrations } from './table-store.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';

test('values of a statement are parameters, never text', () => {
  const part = ch`name in ${texts(["x'; drop table facts"])}`;
  assert.deepEqual(toStatement(ch`select ${plain('1')} where ${part} and n = ${number(7)}`), {
    query: 'select 1 where name in {p1:Array(String)} and n = {p2:UInt32}',
    parameters: { p1: ["x'; drop table facts"], p2: 7 },
  });
});

test('names, captures and devices with any characters come back as they came', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const store = createClickhouseFacts({
    client: engine.client,
    db: () => world.database.db,
    nameApplication: ({ name }) => ({ name, isAttributed: true }),
  });
  await store.migrate();
  const { siteId, sensor } = world;
  const names = ["it's", 'a\\b\\n', 'tab\there', 'line\nend', 'ünïcode 😀', '{p1:String}', '"quoted"', '%'];
  const capture = "br\t'0\\";
  const deviceKey = `${capture}|02:00:00:00:00:01`;
  const minute = captureMinute({
    capture,
    hosts: [host('192.0.2.10', 5, 6, deviceKey)],
    usage: names.map((name) => usageRow({ name, evidence: 'tls_sni' })),
  });
  const upload = {
    origin: { siteId, sensorId: sensor.id },
    token: { spoolId: randomUUID(), sequence: 1 },
    minutes: [minute],
    gaps: [],
  };
  await world.database.db.transaction().execute((trx) => store.append([upload], openScope(trx)));
  const range = { siteId, fromMinute: testMinute, toMinute: testMinute + 60 };
  const { rows } = await store.rankApplications({ ...range, direction: null, limit: 50 });
  assert.deepEqual(rows.map((row) => row.name).sort(), names.toSorted());
  for (const { name, protocol, serverPort } of rows) {
    const used = await store.readApplication({ ...range, direction: null, name, protocol, serverPort });
    assert.deepEqual(
      used.devices.map((one) => one.deviceKey),
      [deviceKey],
      name,
    );
  }
  const [row] = await store.explainAddress({ ...range, address: '192.0.2.10' });
  assert.deepEqual([row!.capture, row!.deviceKey], [capture, deviceKey]);
});

test('a read that takes too long is stopped and says so', async () => {
  await using engine = await createChdbEngine();
  const { rows } = createEngine(engine.client);
  await assert.rejects(rows(ch`select sum(sipHash64(number)) as n from numbers(${number(4e9)})`, 100), {
    code: 'facts.too_slow',
    message: /^This took longer than 0\.1 seconds/,
  });
  // Its settings hold for that statement alone.
  assert.equal(
    (await rows(ch`select sum(sipHash64(number)) > 0 as n from numbers(${number(30_000_000)})`)).length,
    1,
  );
});

test('ClickHouse keeps facts as long as PostgreSQL does', async () => {
  const text = migrations.flat().join('\n');
  for (const { table, keptFor } of keptFacts) {
    const made = new RegExp(
      `create table if not exists ${table} [\\s\\S]*?ttl minute \\+ interval (\\d+ \\w+) delete`,
    ).exec(text);
    if (made) assert.equal(`${made[1]}s`, keptFor, table);
  }
  const own = [...text.matchAll(/create table if not exists (\w+)/g)].map((match) => match[1]);
  assert.deepEqual(
    own.filter((table) => !keptFacts.some((one) => one.table === table)),
    ['peer_minutes', 'store_identity'],
  );
  assert.match(text, /table if not exists peer_minutes [\s\S]*interval 3 month delete/);
});
