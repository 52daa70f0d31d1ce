import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { createTestDatabase, moveDatabaseClock } from '#service-kit/testing/index.ts';
import { createSessions, csrfFault, hashPassword, verifyPassword } from './index.ts';

test('a password verifies against its own hash only, and nobody has none', async () => {
  const stored = await hashPassword('correct horse');
  assert.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  assert.ok(await verifyPassword(stored, 'correct horse'));
  assert.ok(!(await verifyPassword(stored, 'correct horsf')));
  assert.ok(!(await verifyPassword(null, 'nobody')));
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

test('too many failures refuse further sign-ins by e-mail and by source, for ten minutes', async () => {
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
  for (let i = 0; i < 5; i += 1) assert.ok(!(await begin('a@example.com', '192.0.2.9')));
  assert.ok(!(await begin('b@example.com', '192.0.2.1')));
  assert.ok(await begin('b@example.com', '192.0.2.9'), 'what was refused is no failure of its source');
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
  assert.equal(begun.length, 5);
  for (const attempt of begun) await attempt.giveBack();
  for (let i = 0; i < 20; i += 1) {
    const attempt = await sessions.beginAttempt('a@example.com', '192.0.2.1');
    assert.ok(attempt, 'signing in often is no attack');
    await attempt.giveBack();
  }
});

test('an unsafe request needs the token of its session and a page of ours as its source', () => {
  const request = (headers: Record<string, string>, body: unknown) =>
    ({ headers: { host: 'svc.example', ...headers }, body }) as unknown as FastifyRequest;
  const good = { csrf_token: 'token' };
  assert.equal(csrfFault(request({ 'sec-fetch-site': 'same-origin' }, good), 'token'), null);
  assert.equal(csrfFault(request({ origin: 'https://svc.example' }, good), 'token'), null);
  assert.equal(csrfFault(request({ 'x-csrf-token': 'token' }, undefined), 'token'), null);
  for (const bad of [
    request({ 'sec-fetch-site': 'cross-site' }, good),
    request({ 'sec-fetch-site': 'same-site' }, good),
    request({ origin: 'https://evil.example' }, good),
    request({ origin: 'null' }, good),
    request({}, {}),
    request({}, { csrf_token: 'tokem' }),
    request({}, { csrf_token: ['token'] }),
  ]) {
    assert.notEqual(csrfFault(bad, 'token'), null);
  }
});
