// Slow: moves all facts between PostgreSQL and ClickHouse and compares the answers after each move.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { captureMinute, host, usageRow } from '#monitor/testing/index.ts';
import { type HttpEngine, startHttpEngine } from '../clickhouse/testing/start-http-engine.ts';
import { createFactStore, type FactStore, openScope } from '../index.ts';
import { createMoveWorld } from './testing/move-world.ts';

let engine: HttpEngine;
before(async () => {
  engine = await startHttpEngine();
});
after(() => engine[Symbol.asyncDispose]());

test('moved to ClickHouse and back, the facts give the same answers, also with what came and moved in between', async () => {
  await using world = await createMoveWorld(engine);
  const { model } = world;
  const first = world.uploads(14);
  await world.append('postgres', first.slice(0, 9));
  await world.monitor.facts.rollUp('all');
  await world.append('postgres', first.slice(9));
  await model.append(first);
  await world.place();
  await world.move('clickhouse');
  assert.deepEqual(await world.compare('clickhouse'), []);
  // An upload that was applied before the move is sent again.
  const second = world.uploads(7);
  await world.append('clickhouse', [...first.slice(0, 5), ...second]);
  await model.append(second);
  await world.place();
  assert.deepEqual(await world.compare('clickhouse'), []);
  await assert.rejects(world.move('postgres'), /PostgreSQL holds traffic facts already.*delete-facts/s);
  await world.delete('postgres');
  await world.move('postgres');
  assert.deepEqual(await world.compare('postgres'), []);
  const third = world.uploads(7);
  await world.append('postgres', [...second.slice(0, 5), ...third]);
  await model.append(third);
  await world.place();
  await world.monitor.facts.rollUp('all');
  assert.deepEqual(await world.compare('postgres'), []);
});

test('names, captures and devices with any characters move as they are', async () => {
  await using world = await createMoveWorld(engine);
  const { siteId, sensor, database } = world.monitor;
  const store = createFactStore({
    db: () => database.db,
    nameApplication: ({ name }) => ({ name, isAttributed: true }),
  });
  const names = [
    "it's",
    'a\\b\\n',
    '\\x41',
    '\\N',
    '\\.',
    'tab\there',
    'line\nend',
    '\r',
    '\x01\x02\x08',
    'ünïcode 😀',
    '"quoted"',
  ];
  const capture = "br\t'0\\";
  const deviceKey = `${capture}|02:00:00:00:00:01`;
  const [at] = world.minutes as [number];
  const minute = captureMinute({
    minute: at,
    capture,
    hosts: [host('192.0.2.10', 5, 6, deviceKey)],
    usage: names.map((name) => usageRow({ name, evidence: 'tls_sni' })),
  });
  const origin = { siteId, sensorId: sensor.id };
  const upload = { origin, token: { spoolId: randomUUID(), sequence: 1 }, minutes: [minute], gaps: [] };
  await store.prepare([minute.minute]);
  await database.db.transaction().execute((trx) => store.append([upload], openScope(trx)));
  const range = { siteId, fromMinute: at, toMinute: at + 60 };
  const check = async (facts: FactStore) => {
    const { rows } = await facts.rankApplications({ ...range, direction: null, limit: 50 });
    assert.deepEqual(rows.map((row) => row.name).sort(), names.toSorted());
    const [row] = await facts.explainAddress({ ...range, address: '192.0.2.10' });
    assert.deepEqual([row!.capture, row!.deviceKey], [capture, deviceKey]);
  };
  await check(store);
  await world.move('clickhouse');
  await check(world.clickhouse);
  await world.delete('postgres');
  await world.move('postgres');
  await check(store);
});

test('networks of peers whose pairs are gone move there and back', async () => {
  await using world = await createMoveWorld(engine);
  const { facts, standing } = world.monitor;
  const startMs = standing!.nowMs();
  const later = (hours: number) => standing!.set(startMs + hours * 3_600_000);
  await world.append('postgres', world.uploads(16));
  await facts.rollUp('all');
  await later(20);
  await world.append('postgres', world.uploads(6));
  await facts.rollUp('all');
  await later(25);
  await world.move('clickhouse');
  assert.deepEqual(await world.compare('clickhouse', facts), []);
  const before = await world.askPeers('clickhouse');
  assert.ok(before.some((list) => list.total > 0));
  await world.delete('postgres');
  await world.move('postgres');
  await facts.rollUp('all');
  assert.deepEqual(await world.compare('postgres', world.clickhouse), []);
  assert.deepEqual(await world.askPeers('postgres'), before);
});
