// Slow: loses, delays and repeats every insert of a batch.
/** Inserts whose answer never comes: they are lost, arrive late, or had arrived. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { FactUpload } from '../contract/facts.ts';
import { noteSent } from '../control/token-store.ts';
import { type FactStore, openScope } from '../index.ts';
import { createStandingWorld } from '../testing/engines.ts';
import { randomMinutes, randomUpload, seededBelow } from '../testing/random-uploads.ts';
import { createClickhouseFacts } from './clickhouse-facts.ts';
import type { Engine, FactClient } from './engine-store.ts';
import { ch, joined, plain, text } from './statement.ts';
import { createChdbEngine } from './testing/chdb-engine.ts';
import { factTables } from './write-rows.ts';

type Exec = { query: string; values: Readable };
type Fate = 'lost' | 'late' | 'arrived';

/** A client whose nth insert from `failAt(n)` on fails; `deliver` lets it arrive then, if it is late. */
function uncertainClient(client: FactClient) {
  let fate: Fate = 'lost';
  let failing = 0;
  let inserts = 0;
  let late: Exec | null = null;
  return {
    failAt(nth: number, how: Fate) {
      fate = how;
      failing = nth;
      inserts = 0;
      late = null;
    },
    inserts: () => inserts,
    deliver: async () => {
      if (late) await client.exec(late);
    },
    client: {
      query: client.query.bind(client),
      command: client.command.bind(client),
      close: async () => {},
      async exec(parameters: Exec) {
        inserts += 1;
        if (inserts !== failing) return await client.exec(parameters);
        const body = Buffer.concat(await parameters.values.map((piece) => Buffer.from(piece)).toArray());
        const { query } = parameters;
        const copy = { query, values: Readable.from([body]) };
        if (fate === 'late') late = copy;
        if (fate === 'arrived') await client.exec(copy);
        throw new Error('The connection was reset.');
      },
    } as unknown as FactClient,
  };
}

function append(world: MonitorWorld, facts: FactStore, uploads: readonly FactUpload[]): Promise<void> {
  return world.database.db.transaction().execute((trx) => facts.append(uploads, openScope(trx)));
}

/** Rows and packets of every table and minute. */
async function contentsOf(engine: Engine): Promise<unknown[]> {
  const parts = factTables.map((table) => {
    const packets = plain(table === 'capture_minutes' ? 'ip_packets' : 'packets');
    return ch`select ${text(table)} as name, minute, count() as number, sum(${packets}) as packets
      from ${plain(table)} where site_id > 0 group by minute`;
  });
  return await engine.rows(ch`
    select name, toString(minute) as at, number, packets from (${joined(parts, ' union all ')}) order by name, minute`);
}

test('NET-7.1: an insert without an answer that is lost, arrives after its uploads came again, or had arrived counts once, whichever of a batch it is', async () => {
  // Two days of every table, around the midnight that is nearest: connections end their day in ClickHouse by its own clock.
  const midnight = Math.round(Date.now() / 86_400_000) * 86_400;
  await using world = await createStandingWorld(midnight + 600);
  const origins = [{ siteId: world.siteId, sensorId: world.sensor.id }];
  const minutes = [midnight - 120, midnight - 60, midnight];
  const random = seededBelow(5);
  const create = async (client: FactClient) => {
    const facts = createClickhouseFacts({ client, db: () => world.database.db, nameApplication });
    await facts.migrate();
    return facts;
  };
  await using certain = await createChdbEngine();
  await using real = await createChdbEngine();
  const expected = await create(certain.client);
  const uncertain = uncertainClient(real.client);
  const facts = await create(uncertain.client);
  for (let failing = 1, isOver = false; !isOver; failing += 1) {
    isOver = true;
    for (const fate of ['lost', 'late', 'arrived'] as const) {
      const uploads = Array.from({ length: 4 }, () => randomUpload(random, { origins, minutes }));
      uncertain.failAt(failing, fate);
      const outcome = await append(world, facts, uploads).then(
        () => 'stored',
        () => 'failed',
      );
      const isStored = uncertain.inserts() < failing;
      assert.equal(outcome, isStored ? 'stored' : 'failed');
      isOver &&= isStored;
      // Alone and with others, as the inbox may.
      await append(world, facts, uploads.slice(0, 1));
      await append(world, facts, uploads);
      await uncertain.deliver();
      await world.rows('delete from appended_uploads');
      await append(world, expected, uploads);
    }
    assert.deepEqual(await contentsOf(facts.engine), await contentsOf(expected.engine), `insert ${failing}`);
    assert.deepEqual(await world.rows('select 1 from sent_uploads'), [], 'no note is left');
    assert.deepEqual([...(await facts.newestMinutes()).keys()], [world.siteId]);
    assert.ok(!isOver || failing > 6, `${failing - 1} inserts`);
  }
});

test('NET-7.1: an upload that was applied adds nothing when it comes again, also when ClickHouse has forgotten its token', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const facts = createClickhouseFacts({
    client: engine.client,
    db: () => world.database.db,
    nameApplication,
  });
  await facts.migrate();
  for (const table of factTables)
    await facts.engine.run(
      plain(`alter table ${table} modify setting non_replicated_deduplication_window = 2`),
    );
  const origins = [{ siteId: world.siteId, sensorId: world.sensor.id }];
  const minutes = [Math.floor(Date.now() / 60_000) * 60 - 600];
  const random = seededBelow(6);
  const uploads = Array.from({ length: 8 }, () => randomUpload(random, { origins, minutes }));
  for (const upload of uploads) await append(world, facts, [upload]);
  const contents = await contentsOf(facts.engine);
  await append(world, facts, uploads);
  assert.deepEqual(await contentsOf(facts.engine), contents);
});

test('NET-7.1: a process that has lost uploads to another one, which sends or has ended them, is stopped before it sends them', async () => {
  await using world = await createMonitorWorld();
  await using engine = await createChdbEngine();
  const { db } = world.database;
  const facts = createClickhouseFacts({ client: engine.client, db: () => db, nameApplication });
  await facts.migrate();
  const origins = [{ siteId: world.siteId, sensorId: world.sensor.id }];
  const random = seededBelow(7);
  const minutes = [Math.floor(Date.now() / 60_000) * 60 - 600];
  const [sent, ended, other] = [0, 1, 2].map(() => randomMinutes(random, { origins, minutes }));
  await noteSent(db, [{ id: randomUUID(), uploads: [sent!] }]);
  await append(world, facts, [ended!]);
  for (const lost of [sent!, ended!])
    await assert.rejects(noteSent(db, [{ id: randomUUID(), uploads: [other!, lost] }]), { code: '40001' });
  // What was noted and never sent is sent.
  await append(world, facts, [sent!, other!]);
  assert.deepEqual(
    await facts.engine.rows(
      plain('select uniqExact(spool_id, sequence) as n from capture_minutes where site_id > 0'),
    ),
    [{ n: 3 }],
  );
});
