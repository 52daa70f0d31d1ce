import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { giveObjects } from '#service-kit/postgres/access.ts';
import { createTestDatabase, moveDatabaseClock, type TestDatabase } from '#service-kit/testing/index.ts';
import {
  type AuditActor,
  type AuditEntry,
  auditTable,
  readEntries,
  record,
  sentenceOf,
  streamEntries,
} from './index.ts';
import { deleteExpired } from './store.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase('service-kit');
});
after(() => database.drop());

const origin = { address: '192.0.2.7', requestId: 'req_1' };
const ada: AuditActor = { kind: 'customer', personId: 7, keyId: null, name: 'ada@example.com', origin };

const write = (actor: AuditActor, entry: AuditEntry) =>
  database.db.transaction().execute((trx) => record(trx, actor, entry));
const all = async () => (await readEntries(database.db, {}, { limit: 10_000 })).entries;

test('an entry says who, from where, what, on what, before and after', async () => {
  const beganMs = Date.now();
  await write(ada, {
    operation: 'thing.rename',
    subject: { kind: 'thing', id: 12, name: 'web' },
    organizationId: 3,
    before: { name: 'old' },
    after: { name: 'web', at: new Date(0) },
  });
  const [entry] = await all();
  const { id: _, occurredAtMs, ...rest } = entry!;
  assert.ok(occurredAtMs >= beganMs - 1 && occurredAtMs <= Date.now());
  assert.deepEqual(rest, {
    operation: 'thing.rename',
    actorKind: 'person',
    actorId: '7',
    actorName: 'ada@example.com',
    personId: 7,
    sourceAddress: '192.0.2.7',
    requestId: 'req_1',
    subjectKind: 'thing',
    subjectId: '12',
    subjectName: 'web',
    organizationId: 3,
    tenantId: null,
    before: { name: 'old' },
    after: { name: 'web', at: '1970-01-01T00:00:00.000Z' },
  });
});

test('an entry is written only inside a transaction, and goes with the change that fails', async () => {
  const entry = { operation: 'thing.fail', subject: { kind: 'thing', id: 1 } };
  await assert.rejects(record(database.db, ada, entry), /outside a transaction/);
  const failing = database.db.transaction().execute(async (trx) => {
    await record(trx, ada, entry);
    throw new Error('the change fails');
  });
  await assert.rejects(failing, /the change fails/);
  assert.equal((await all()).filter((each) => each.operation === 'thing.fail').length, 0);
});

test('members whose names say secret are never kept, at any depth', async () => {
  await write(ada, {
    operation: 'thing.secret',
    subject: { kind: 'thing', id: 1 },
    after: {
      password: 'hunter2-hunter2',
      list: [{ webhookSecret: 'whsec-1', url: 'https://a.test' }],
      tokenId: 'abc',
      hasToken: true,
      note: 'zero\u0000byte',
    },
  });
  const [entry] = await all();
  assert.deepEqual(entry!.after, {
    password: '[hidden]',
    list: [{ webhookSecret: '[hidden]', url: 'https://a.test' }],
    tokenId: 'abc',
    hasToken: true,
    note: 'zero\ufffdbyte',
  });
});

test('the database refuses to change, delete or truncate entries, and to backdate one', async () => {
  await write(ada, { operation: 'thing.kept', subject: { kind: 'thing', id: 99 } });
  for (const statement of [
    "update audit_entries set operation = 'x'",
    'delete from audit_entries',
    'truncate audit_entries',
    'begin; set local session_replication_role = replica; delete from audit_entries; commit',
  ]) {
    await assert.rejects(database.pool.query(statement), /append-only/, statement);
    await database.pool.query('rollback').catch(() => {});
  }
  await database.pool.query(
    `insert into audit_entries (occurred_at, operation, actor_kind, subject_kind, subject_id)
     values ('2001-01-01', 'thing.backdated', 'system', 'thing', '1')`,
  );
  assert.equal(await deleteExpired(database.db, 100), 0);
});

test('once audit.sql was run the program’s role inserts and reads entries, and neither changes the trail nor what keeps it', async (t) => {
  const own = await createTestDatabase('service-kit');
  const { rows } = await own.pool.query<{ name: string }>('select current_database() as name');
  const [name, program, keeper] = [rows[0]!.name, `${rows[0]!.name}_program`, `${rows[0]!.name}_audit`];
  const admin = new pg.Client({ connectionString: own.url });
  await admin.connect();
  const script = (file: string) =>
    readFileSync(new URL(`../../packaging/postgres/${file}`, import.meta.url), 'utf8');
  await assert.rejects(admin.query(script('audit.sql')), /The program works as the superuser/);
  await admin.query(
    `create role ${program} login; create role ${name}_reader; alter database ${name} owner to ${program}`,
  );
  await giveObjects(admin, program);
  const open = async () => {
    const client = new pg.Client({ connectionString: own.url.replace(/\/\/\w+@/, `//${program}@`) });
    await client.connect();
    return client;
  };
  const client = await open();
  t.after(async () => {
    await client.end();
    await admin.end();
    await own.drop();
    await database.pool.query(`drop role ${program}, ${keeper}, ${name}_reader`);
  });
  // At the first start, and again.
  for (let i = 0; i < 2; i += 1) await admin.query(script('audit.sql'));

  await client.query(`insert into audit_entries (occurred_at, operation, actor_kind, subject_kind, subject_id)
    values ('2001-01-01', 'thing.kept', 'system', 'thing', '1')`);
  for (const statement of [
    ...["update audit_entries set operation = 'x'", 'delete from audit_entries', 'truncate audit_entries'],
    'alter table audit_entries disable trigger all',
    'drop trigger audit_entries_append_only on audit_entries',
    'create trigger mine before insert on audit_entries for each row execute function audit_entries_refuse()',
    'create rule mine as on insert to audit_entries do instead nothing',
    ...['drop table audit_entries', 'drop schema public cascade', 'alter schema public rename to other'],
    ...['alter table audit_entries rename to other', `alter table audit_entries owner to ${program}`],
    'create or replace function svc_now() returns timestamptz language sql as $$select now()$$',
    'create or replace function audit_entries_refuse() returns trigger language plpgsql as $$begin return old; end$$',
    ...['drop function audit_entries_stamp() cascade', `set role ${keeper}`],
    'set session_replication_role = replica',
  ])
    await assert.rejects(client.query(statement), /permission denied|must be (able to|owner)/, statement);
  const expire = async (by: pg.Client) =>
    (await by.query<{ count: number }>('select audit_entries_expire(100) as count')).rows[0]!.count;
  assert.equal(await expire(client), 0, 'backdated, and stamped anew');
  // Objects of its own come before those of PostgreSQL here: the functions of the trail do not look there.
  await client.query(`set search_path = public, pg_catalog;
    create function later(timestamptz, timestamptz) returns boolean language sql as 'select true';
    create operator public.< (leftarg = timestamptz, rightarg = timestamptz, function = later)`);
  assert.equal(await expire(client), 0);
  await client.query('reset search_path; drop operator public.< (timestamptz, timestamptz)');

  // What the program does besides: migrations, dumps, the readers' grants.
  await client.query('create table further (n int); create view seen as select count(*) from audit_entries');
  await client.query('select last_value from audit_entries_id_seq');
  await client.query(script('readers.sql'));
  await client.query('drop view seen; drop table further');
  assert.equal((await client.query('select 1 from audit_entries')).rowCount, 1);
  await admin.query(`alter database ${name} set svc.clock_offset = '366 days'`);
  const later = await open();
  assert.equal(await expire(later).finally(() => later.end()), 1, 'after its year');
});

test('entries are found by person, subject, operation, time and owner; a batch stream holds them all', async () => {
  const key: AuditActor = { kind: 'customer', personId: 8, keyId: 'k0123456789abcdef' };
  for (let n = 0; n < 1_100; n += 1) {
    const subject = { kind: 'gadget', id: n, name: `gadget_${n}` };
    await write(n % 2 === 0 ? ada : key, { operation: 'gadget.make', subject, tenantId: n % 3 });
  }
  const find = async (filter: Parameters<typeof readEntries>[1]) =>
    (await readEntries(database.db, filter, { limit: 10_000 })).entries.length;
  assert.equal(await find({ who: 'ADA@', operation: 'gadget' }), 550);
  assert.equal(await find({ who: 'k0123456789abcdef' }), 550);
  assert.equal(await find({ who: '8' }), 550, 'a key acts for its person');
  assert.equal(await find({ subject: 'gadget 17' }), 1);
  assert.equal(await find({ subject: 'gadget_17' }), 11, 'part of the name, and _ is no wildcard');
  assert.equal(await find({ operation: 'gad' }), 0, 'whole parts of an operation');
  assert.equal(await find({ fromMs: Date.now() + 60_000 }), 0);
  assert.equal(await find({ scope: { organizationIds: [], tenantIds: [1] } }), 367);
  assert.equal(await find({ scope: { organizationIds: [], tenantIds: [] } }), 0);
  const page = await readEntries(database.db, { operation: 'gadget' }, { limit: 100 });
  const next = await readEntries(
    database.db,
    { operation: 'gadget' },
    { limit: 100, before: page.nextBefore },
  );
  assert.equal(next.entries[0]!.id, page.entries.at(-1)!.id - 1);
  let streamed = 0;
  for await (const batch of streamEntries(database.db, { operation: 'gadget' })) streamed += batch.length;
  assert.equal(streamed, 1_100);
});

test('the trail says what a change set where there was nothing, and nothing where there was something', async () => {
  const subject = { kind: 'thing', id: 99, name: 'mail' };
  await write(ada, {
    operation: 'thing.route',
    subject,
    before: { to: null, by: 'x' },
    after: { to: 'y', by: null },
  });
  const { entries } = await readEntries(database.db, { operation: 'thing.route' }, { limit: 1 });
  const trail = String(auditTable({ path: '/audit/', query: {}, entries, nextBefore: null, emptyText: '' }));
  assert.match(trail, /<div>by: x → none<\/div><div>to: none → y<\/div>/);
  assert.match(trail, /ada@example\.com routed thing mail<details[^>]*><summary>Details<\/summary>/);
});

test('an entry is a sentence: who did what to what, and what a new server is made of', async () => {
  const sentence = async (entry: AuditEntry, actor = ada) => {
    await write(actor, entry);
    const { entries } = await readEntries(database.db, {}, { limit: 1 });
    return sentenceOf(entries[0]!);
  };
  const server = { kind: 'server', id: 7, name: 'db-1' };
  const after = { plan: 'kvm-1', image: 'ubuntu-24.04', orderId: 3 };
  assert.equal(
    await sentence({ operation: 'server.create', subject: server, after }),
    'ada@example.com deployed server db-1, kvm-1, ubuntu-24.04',
  );
  const tenant = { kind: 'tenant', id: 4, name: 'Acorn $& Co' };
  assert.equal(
    await sentence({ operation: 'tenant.set_billing_profile', subject: tenant }),
    'ada@example.com set the billing profile of workspace Acorn $& Co',
  );
  assert.equal(
    await sentence({ operation: 'key.revoke', subject: { kind: 'key', id: 'k1' } }),
    'ada@example.com revoked API key k1',
  );
  assert.equal(await sentence({ operation: 'session.start', subject: server }), 'ada@example.com signed in');
});

test('entries are kept for a year and go after it', async () => {
  const kept = (await all()).length;
  await moveDatabaseClock(database, '364 days');
  assert.equal(await deleteExpired(database.db, 10_000), 0);
  await write(ada, { operation: 'thing.later', subject: { kind: 'thing', id: 1 } });
  await moveDatabaseClock(database, '366 days 1 hour');
  assert.equal(await deleteExpired(database.db, 10_000), kept);
  assert.deepEqual(
    (await all()).map((entry) => entry.operation),
    ['thing.later'],
  );
});
