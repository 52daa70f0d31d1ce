import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';
import { createOutboxSender, isUnclaimed, setClaim } from './index.ts';

interface Target {
  id: number;
  term: number;
}

/** Targets with so many messages each; `accept` is the receiver. */
async function createOutbox(
  database: TestDatabase,
  messages: readonly number[],
  accept: (id: number) => boolean,
) {
  await database.pool.query(`
    create table targets (id integer primary key, term integer not null default 0, claimed_until timestamptz);
    create table messages (id integer primary key generated always as identity, target_id integer, is_sent boolean default false)`);
  for (const [index, count] of messages.entries()) {
    await database.pool.query('insert into targets (id) values ($1)', [index + 1]);
    await database.pool.query('insert into messages (target_id) select $1 from generate_series(1, $2::int)', [
      index + 1,
      count,
    ]);
  }
  const sent: number[] = [];
  const claims: Target[] = [];
  const declaration = {
    name: 'messages',
    failure: 'messages can not be sent',
    table: 'targets',
    workers: 1,
    prepare: async () => false,
    async claim(db: TestDatabase['db'], claimSeconds: number) {
      const { rows } = await sql<Target>`
        with due as (
          select t.id from messages m join targets t on t.id = m.target_id
          where not m.is_sent and ${isUnclaimed('t')} and t.term < 3 order by t.term, m.id limit 1 for update of t skip locked)
        update targets t set ${setClaim(claimSeconds)} from due where t.id = due.id returning t.id, t.term`.execute(
        db,
      );
      if (rows[0]) claims.push(rows[0]);
      return rows[0] ?? null;
    },
    async next(db: TestDatabase['db'], target: Target) {
      const { rows } = await sql<{ id: number }>`
        select id from messages where target_id = ${target.id} and not is_sent order by id limit 1`.execute(
        db,
      );
      return rows[0] ?? null;
    },
    async attempt(target: Target, message: { id: number }) {
      sent.push(message.id);
      if (!accept(target.id)) return false;
      await database.pool.query('update messages set is_sent = true where id = $1', [message.id]);
      return true;
    },
  };
  const sender = createOutboxSender(declaration, {
    db: () => database.db,
    clock: systemClock,
    reporter: silentReporter,
  });
  return { sender, sent, claims, declaration };
}

test('a target is served in order, and after twenty messages the next target has its turn', async () => {
  await using database = await createTestDatabase('service-kit');
  const { sender, sent, claims } = await createOutbox(database, [22, 2], () => true);
  await sender.drain();
  const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  assert.deepEqual(sent, [...ids(1, 20), 23, 24, 21, 22]);
  assert.deepEqual(claims, [
    { id: 1, term: 1 },
    { id: 2, term: 1 },
    { id: 1, term: 2 },
  ]);
});

test('a failure ends the turn of its target, and the claim is given back', async () => {
  await using database = await createTestDatabase('service-kit');
  const { sender, sent } = await createOutbox(database, [2, 1], (id) => id === 2);
  await sender.drain();
  assert.deepEqual(sent, [1, 3, 1, 1], 'the second message never overtakes the first');
  const { rows } = await database.pool.query('select id from targets where claimed_until is not null');
  assert.deepEqual(rows, []);
});

test('a worker whose claim was taken over sends nothing more and leaves the new claim alone', async () => {
  await using database = await createTestDatabase('service-kit');
  const { sender, sent, declaration } = await createOutbox(database, [3], () => true);
  const { attempt } = declaration;
  declaration.attempt = async (target, message) => {
    const isAccepted = await attempt(target, message);
    await database.pool.query(
      "update targets set term = 3, claimed_until = now() + interval '1 hour' where id = $1",
      [target.id],
    );
    return isAccepted;
  };
  await sender.drain();
  assert.deepEqual(sent, [1]);
  const { rows } = await database.pool.query('select term, claimed_until > now() as "isHeld" from targets');
  assert.deepEqual(rows, [{ term: 3, isHeld: true }]);
});
