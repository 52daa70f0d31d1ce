// Own process: it checks passwords as the product stores them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { createTestDatabase, moveDatabaseClock } from '#service-kit/testing/index.ts';
import {
  browserName,
  createSessions,
  csrfFault,
  foldEmail,
  hashPassword,
  passwordFault,
  verifyPassword,
} from './index.ts';
import { maskToken } from './token-mask.ts';

test('a password verifies against its own hash only, and never without a hash', async () => {
  const stored = await hashPassword('correct horse');
  assert.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.ok(await verifyPassword(stored, 'correct horse'));
  assert.ok(!(await verifyPassword(stored, 'correct horsf')));
  assert.ok(!(await verifyPassword(null, 'unknown')));
});

test('a session lives until it is ended, idle too long or too old', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({
    db: () => database.db,
    cookieName: 'svc',
    isHttps: false,
    idleHours: 12,
    absoluteHours: 48,
  });
  const cookie = (await sessions.start(7)).split(';')[0]!;
  assert.equal((await sessions.read(cookie))?.personId, 7);
  assert.equal(await sessions.read(`${cookie.slice(0, -1)}x`), null);
  assert.equal(await sessions.read(undefined), null);
  await moveDatabaseClock(database, '13 hours');
  assert.equal(await sessions.read(cookie), null, 'idle');
  await moveDatabaseClock(database, '0');
  await sessions.end(cookie);
  assert.equal(await sessions.read(cookie), null, 'ended');
});

test('a page that renews itself does not keep an idle session alive; a person does', async () => {
  await using database = await createTestDatabase('service-kit');
  const db = () => database.db;
  const sessions = createSessions({ db, cookieName: 'svc', isHttps: false, idleHours: 12 });
  const cookie = (await sessions.start(7)).split(';')[0]!;
  for (const hours of [4, 8, 11]) {
    await moveDatabaseClock(database, `${hours} hours`);
    assert.equal((await sessions.read(cookie, { isActivity: false }))?.personId, 7, `after ${hours} hours`);
  }
  await moveDatabaseClock(database, '13 hours');
  assert.equal(await sessions.read(cookie, { isActivity: false }), null, 'idle in spite of the refreshes');
  await moveDatabaseClock(database, '11 hours');
  assert.equal((await sessions.read(cookie))?.personId, 7);
  await moveDatabaseClock(database, '22 hours');
  assert.equal((await sessions.read(cookie))?.personId, 7, 'used at 11 hours');
});

test('the database holds no secret of a session', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({ db: () => database.db, cookieName: 'svc', isHttps: true });
  const cookie = await sessions.start(7);
  assert.match(cookie, /^__Host-svc=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure/);
  const secret = /=([^;]+)/.exec(cookie)![1]!;
  const { rows } = await database.pool.query('select row_to_json(sessions)::text as row from sessions');
  assert.ok(!JSON.stringify(rows).includes(secret));
});

test('a changed password ends all sessions of that person and no others', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({ db: () => database.db, cookieName: 'svc', isHttps: false });
  const mine = (await sessions.start(7)).split(';')[0]!;
  const other = (await sessions.start(8)).split(';')[0]!;
  await sessions.endAll(7);
  assert.equal(await sessions.read(mine), null);
  assert.equal((await sessions.read(other))?.personId, 8);
});

test('too many failures refuse further sign-ins of a source, and of an email from many sources, for ten minutes', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({
    db: () => database.db,
    cookieName: 'svc',
    isHttps: false,
    failuresMax: 3,
  });
  const begin = async (email: string, source: string) =>
    (await sessions.beginAttempt(email, source)) !== null;
  for (let i = 0; i < 3; i += 1) assert.ok(await begin('A@example.com', '192.0.2.1'));
  assert.ok(!(await begin('a@example.com', '192.0.2.1')), 'the source has failed too often');
  assert.ok(!(await begin('b@example.com', '192.0.2.1')), 'with every email');
  for (let source = 2; source <= 5; source += 1)
    for (let i = 0; i < 3; i += 1) assert.ok(await begin('a@example.com', `192.0.2.${source}`));
  for (let i = 0; i < 5; i += 1) assert.ok(!(await begin(' A@Example.com', '192.0.2.9')), 'the email has');
  assert.ok(await begin('b@example.com', '192.0.2.9'), 'a refused attempt is no failure of its source');
  await moveDatabaseClock(database, '11 minutes');
  assert.ok(await begin('a@example.com', '192.0.2.1'));
});

test('of many attempts at once no more than the limit may look at the password; what succeeds is given back', async () => {
  await using database = await createTestDatabase('service-kit');
  const db = () => database.db;
  const sessions = createSessions({ db, cookieName: 'svc', isHttps: false, failuresMax: 5 });
  const attempts = await Promise.all(
    Array.from({ length: 40 }, (_, i) => sessions.beginAttempt('a@example.com', `192.0.2.${i % 3}`)),
  );
  const begun = attempts.filter((attempt) => attempt !== null);
  assert.equal(begun.length, 15, 'five of each source');
  for (const attempt of begun) await attempt.giveBack();
  for (let i = 0; i < 20; i += 1) {
    const attempt = await sessions.beginAttempt('a@example.com', '192.0.2.1');
    assert.ok(attempt, 'signing in often is no attack');
    await attempt.giveBack();
  }
});

test('a person sees where their sessions are, ends one, and no session of another person', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({ db: () => database.db, cookieName: 'svc', isHttps: false });
  const cookieOf = (setCookie: string) => setCookie.split(';')[0]!;
  const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  const here = cookieOf(await sessions.start(7, { source: '192.0.2.1', userAgent }));
  const there = cookieOf(await sessions.start(7, { source: '192.0.2.2', userAgent: null }));
  const foreign = cookieOf(await sessions.start(8));
  const seen = await sessions.list(7, here);
  assert.deepEqual(
    seen.map((session) => [session.source, browserName(session.userAgent), session.isCurrent]).sort(),
    [
      ['192.0.2.1', 'Firefox on Linux', true],
      ['192.0.2.2', 'Unknown browser', false],
    ],
  );
  const [other] = await sessions.list(8, foreign);
  assert.equal(await sessions.endOne(7, other!.id), false);
  assert.equal(await sessions.endOne(7, seen.find((session) => !session.isCurrent)!.id), true);
  assert.equal(await sessions.read(there), null);
  assert.ok((await sessions.read(here)) && (await sessions.read(foreign)));
});

test('a session is confirmed for fifteen minutes; confirming it again gives it a new secret', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({ db: () => database.db, cookieName: 'svc', isHttps: false });
  const cookie = (await sessions.start(7)).split(';')[0]!;
  assert.equal((await sessions.read(cookie))?.isConfirmed, true);
  await moveDatabaseClock(database, '16 minutes');
  assert.equal((await sessions.read(cookie))?.isConfirmed, false);
  const renewed = (await sessions.confirm(cookie))!.split(';')[0]!;
  assert.equal(await sessions.read(cookie), null, 'the old secret is worth nothing');
  assert.equal((await sessions.read(renewed))?.isConfirmed, true);
  assert.equal(await sessions.confirm(cookie), null);
});

test('a session knows whether a second factor was shown in it, at its start or since', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({ db: () => database.db, cookieName: 'svc', isHttps: false });
  const shown = async (cookie: string) => (await sessions.read(cookie.split(';')[0]))?.hasSecondFactor;
  const weak = await sessions.start(7);
  assert.equal(await shown(weak), false);
  assert.equal(await shown(await sessions.start(7, undefined, { hasSecondFactor: true })), true);
  const byPassword = (await sessions.confirm(weak.split(';')[0]))!;
  assert.equal(await shown(byPassword), false);
  const byCode = (await sessions.confirm(byPassword.split(';')[0], true))!;
  assert.equal(await shown(byCode), true);
  const later = (await sessions.confirm(byCode.split(';')[0]))!;
  assert.equal(await shown(later), true, 'confirming by the password takes nothing away');
});

test('a session that follows from another one is confirmed no longer and ends no later than that one', async () => {
  await using database = await createTestDatabase('service-kit');
  const sessions = createSessions({
    ...{ db: () => database.db, cookieName: 'svc', isHttps: false },
    absoluteHours: 48,
  });
  const since = async (hours: number) => {
    const authenticatedAtMs = Date.now() - hours * 3_600_000;
    const cookie = await sessions.start(7, undefined, { hasSecondFactor: false, authenticatedAtMs });
    return sessions.read(cookie.split(';')[0]);
  };
  assert.equal((await since(0))?.isConfirmed, true);
  const beforeMs = Date.now();
  const old = await since(47);
  const afterMs = Date.now();
  assert.equal(old?.isConfirmed, false);
  // PostgreSQL keeps whole microseconds, which may round the milliseconds by one.
  const askedAtMs = old!.authenticatedAtMs + 47 * 3_600_000;
  assert.ok(askedAtMs >= beforeMs - 1 && askedAtMs <= afterMs + 1, 'it is as old as it was said to be');
  assert.equal(await since(49), null);
  const ahead = await since(-1);
  assert.ok(ahead!.authenticatedAtMs <= Date.now() + 1_000, 'a clock that runs ahead makes it no younger');
});

test('every spelling of an email that reaches one person has one count', () => {
  assert.equal(foldEmail(' Admin@Example.com '), 'admin@example.com');
  // PostgreSQL would fold both to "admin": they are different texts here, so they match no person.
  assert.notEqual(foldEmail('adm\u0130n@example.com'), 'admin@example.com');
});

test('a password is long, is no common one, and is not made of its person’s name, address or this service', async () => {
  const owner = { email: 'ada.lovelace@northwind.test', name: 'Ada Lovelace' };
  for (const good of [
    'purple tractor moon',
    'ada and the twelve engines',
    'moon 2026 tractor',
    '日本語のとても長い合言葉です',
  ])
    assert.equal(await passwordFault(good, owner), null, good);
  for (const bad of [
    'eleven char',
    'ada.lovelace@northwind.test',
    'Lovelace-Ada-1815',
    'northwind1234',
    'svc-monitor-1',
    'password1234',
    'P@ssw0rd12345',
    'qwertyuiop12',
    '123456789012',
    'iloveyou1234',
    'aaaaaaaaaaaaaaa',
    ...['Summer2026!!', 'Spring-2026-!', '2027 Frühling!', 'London2026!!!'],
    ...['December2026!', 'Winter2026!!!', 'changeme2026!', 'ChangeMe123!!'],
    'x'.repeat(201),
  ])
    assert.notEqual(await passwordFault(bad, owner), null, bad);
  // Random digits, one run of letters among them, are no word with a year.
  for (const random of ['42019ab787651234', '1999087654ffab12', '20b5198764320917'])
    assert.equal(await passwordFault(random, owner), null, random);
});

test('an unsafe request needs the token of its session and a page of ours as its source', () => {
  const request = (headers: Record<string, string>, body: unknown) =>
    ({ headers: { host: 'svc.example', ...headers }, body }) as unknown as FastifyRequest;
  const good = { csrf_token: 'token' };
  assert.equal(csrfFault(request({ 'sec-fetch-site': 'same-origin' }, good), 'token'), null);
  assert.equal(csrfFault(request({ origin: 'https://svc.example' }, good), 'token'), null);
  assert.equal(csrfFault(request({ 'x-csrf-token': 'token' }, undefined), 'token'), null);
  assert.equal(csrfFault(request({}, { csrf_token: maskToken('token') }), 'token'), null);
  for (const bad of [
    request({ 'sec-fetch-site': 'cross-site' }, good),
    request({ 'sec-fetch-site': 'same-site' }, good),
    request({ origin: 'https://evil.example' }, good),
    request({ origin: 'null' }, good),
    request({}, {}),
    request({}, { csrf_token: 'tokem' }),
    request({}, { csrf_token: maskToken('tokem') }),
    request({}, { csrf_token: ['token'] }),
  ]) {
    assert.notEqual(csrfFault(bad, 'token'), null);
  }
});
