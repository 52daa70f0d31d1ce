// Slow: starts operations as five processes.
/** Operations as several real processes on one database, as their clients see them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RedisServer, startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { until } from '#service-kit/testing/until.ts';
import {
  createInstallation,
  type Installation,
  password,
  type ServeProcess,
} from './testing/installation.ts';

const budget = 6;
let redis: RedisServer;
let installation: Installation;
let web: ServeProcess[];
before(async () => {
  [redis, installation] = await Promise.all([startRedis(), createInstallation()]);
  const settings = {
    SVC_LIMITS_URL: redis.url,
    SVC_API_KEY_REQUESTS_PER_MINUTE: String(budget),
    SVC_API_AUTH_FAILURES_MAX: '4',
  };
  web = await Promise.all([installation.start('web', settings), installation.start('web', settings)]);
});
after(async () => {
  await installation[Symbol.asyncDispose]();
  await redis.kill();
});

const call = (index: number, token: string, path = '/key', init: RequestInit = {}) =>
  fetch(`${web[index]!.url}/api/v2${path}`, {
    ...init,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  });

test('API-8.a: two processes count the requests of a key together, in status, headers and wait', async () => {
  const [token, other] = (await installation.addKeys(2)) as [string, string];
  const answers: [number, string | null][] = [];
  for (let i = 0; i < budget + 2; i += 1) {
    const answer = await call(i % 2, token);
    const remaining = /^"key";r=(\d+);t=(\d+)$/.exec(answer.headers.get('ratelimit')!)!;
    answers.push([answer.status, remaining[1]!]);
    assert.ok(Number(remaining[2]) >= 1 && Number(remaining[2]) <= 60);
    assert.equal(answer.headers.get('retry-after'), answer.status === 429 ? remaining[2] : null);
  }
  const expected = Array.from({ length: budget }, (_, i) => [200, String(budget - 1 - i)]);
  assert.deepEqual(answers, [...expected, [429, '0'], [429, '0']]);
  assert.equal((await call(1, other)).status, 200, 'another key has a budget of its own');
});

test('failed authentications of an address are counted by both processes together', async () => {
  const statuses: number[] = [];
  for (let i = 0; i < 6; i += 1) statuses.push((await call(i % 2, 'svc_wrong_wrong')).status);
  assert.deepEqual(statuses, [401, 401, 401, 401, 429, 429]);
});

test('failed sign-ins are counted by both processes together, in the database', async () => {
  const { email } = await installation.addCustomer('Guessed');
  const guess = async (index: number, given: string) => {
    const answer = await fetch(`${web[index]!.url}/sign-in`, {
      method: 'POST',
      body: new URLSearchParams({ email, password: given }),
      redirect: 'manual',
    });
    return { status: answer.status, text: await answer.text() };
  };
  for (let i = 0; i < 20; i += 1) assert.notEqual((await guess(i % 2, `guess ${i}`)).status, 303);
  for (const index of [0, 1]) {
    const refused = await guess(index, password);
    assert.notEqual(refused.status, 303, 'the right password is not looked at');
    assert.match(refused.text, /Too many failed attempts/);
  }
});

test('jobs are done by a process for jobs; processes of pages leave them', async () => {
  const [token] = (await installation.addKeys(1)) as [string];
  const order = { plan: 'small', image: 'debian-12', name: 'queued' };
  const ordered = await call(0, token, '/servers', { method: 'POST', body: JSON.stringify(order) });
  assert.equal(ordered.status, 201);
  const { id } = (await ordered.json()) as { id: number };
  const jobs = async () =>
    (await installation.pool.query('select attempts, finished_at from jobs order by id')).rows;
  assert.deepEqual(await jobs(), [{ attempts: 0, finished_at: null }]);
  const worker = await installation.start('jobs');
  const isReady = async () => {
    const { rows } = await installation.pool.query('select provisioning_state from servers where id = $1', [
      id,
    ]);
    return rows[0].provisioning_state === 'ready';
  };
  await until('the server is ready', 120_000, isReady);
  assert.equal((await fetch(`${worker.url}/readyz`)).status, 200);
  for (const path of ['/api/v2/key', '/sign-in', '/console/'])
    assert.equal((await fetch(worker.url + path)).status, 404, `${path} is no page of this process`);
  assert.equal(await worker.end(), 0);
});

test('of two processes for loops each loop runs in one; the other takes over what one leaves', async () => {
  const holders = async () => {
    const { rows } = await installation.pool.query<{ name: string; pid: string }>(
      "select name, split_part(holder, '-', 1) as pid from leases where expires_at > svc_now() order by name",
    );
    return rows;
  };
  const [one, two] = await Promise.all([installation.start('loops'), installation.start('loops')]);
  const both = [String(one.pid), String(two.pid)];
  await until('the loops hold leases', 120_000, async () => (await holders()).length >= 10);
  const before = await holders();
  assert.ok(before.every(({ pid }) => both.includes(pid)));
  const [leaves, stays] = before[0]!.pid === String(one.pid) ? [one, two] : [two, one];
  const left = before.filter(({ pid }) => pid === String(leaves.pid)).map(({ name }) => name);
  assert.equal(await leaves.end(), 0);
  assert.ok(
    (await holders()).every(({ pid }) => pid === String(stays.pid)),
    'it gives back every lease',
  );
  // The next turn of a loop takes its lease; some come once in minutes.
  const isTakenOver = async () => (await holders()).some(({ name }) => left.includes(name));
  await until('the other process holds one of these leases', 120_000, isTakenOver);
  assert.equal(await stays.end(), 0);
});

test('without the limit store no request fails: each process goes on counting for itself, and says so', async () => {
  const [token] = (await installation.addKeys(1)) as [string];
  for (let i = 0; i < 4; i += 1) assert.equal((await call(i % 2, token)).status, 200);
  await redis.kill();
  const answers = await Promise.all(Array.from({ length: 2 * budget + 2 }, (_, i) => call(i % 2, token)));
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  assert.deepEqual([count(200), count(429)], [2 * budget - 4, 6], 'the limit once for each process');
  const ready = async () => (await fetch(`${web[0]!.url}/readyz`)).json();
  assert.deepEqual(await ready(), {
    status: 'ready',
    checks: { database: 'ok', limits: 'each process counts for itself' },
  });
  assert.ok(web[0]!.log.some((line) => line.includes('limits are counted in this process alone')));
  await redis.revive();
  const isShared = async () => ((await ready()) as { checks: { limits: string } }).checks.limits === 'ok';
  await until('limits are shared again', 120_000, isShared);
  assert.equal((await call(0, token)).status, 429, 'a store without its data is told what was counted');
});

test('a role that does not exist is refused with the roles, and the help explains them', () => {
  const program = fileURLToPath(new URL('../svc.ts', import.meta.url));
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
    return { status, text: stdout + stderr };
  };
  for (const [name, roles] of [
    ['operations', 'web, jobs, loops'],
    ['monitor', 'web, inbox, feeds, live, loops'],
  ] as const) {
    const refused = run(name, 'serve', '--only', 'web,workers');
    assert.equal(refused.status, 1);
    assert.ok(refused.text.includes(`There is no role "workers". The roles are ${roles}.`), refused.text);
    const help = run(name, 'serve', '--help').text;
    for (const role of roles.split(', ')) assert.match(help, new RegExp(`^  ${role} +[a-z]`, 'm'));
  }
});
