import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { type StillClock, stopDatabaseClock } from '#monitor/testing/still-clock.ts';

const dayMs = 86_400_000;
let server: MonitorServer;
let clock: StillClock;
let hosts = 0;

before(async () => {
  server = await startMonitorServer();
});
after(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  if (clock === undefined) clock = await stopDatabaseClock(server.database, Date.UTC(2027, 0, 1));
  else await clock.set(clock.nowMs() + 400 * dayMs);
});

interface Refusal {
  error?: { code: string; message: string };
}
interface Plan extends Refusal {
  credential_version: number;
  credential: { expires_at: string | null; rotate: boolean };
}
interface Rotation extends Refusal {
  credential: string;
  expires_at: string;
}

async function call<Body extends Refusal>(method: string, path: string, credential: string, body?: object) {
  const answer = await fetch(`${server.url}/agent/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${credential}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const parsed = (await answer.json()) as Body;
  await server.monitor.sensors.settled();
  return { status: answer.status, code: parsed.error?.code, body: parsed };
}

const plan = (credential: string) => call<Plan>('GET', '/plan', credential);
const rotate = (credential: string) => call<Rotation>('POST', '/credential', credential, {});

async function enrol(): Promise<{ id: number; credential: string; hostName: string }> {
  hosts += 1;
  const hostName = `host-${hosts}`;
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const request = { token, host_name: hostName, node: hostName, sensor_version: '0.1.0' };
  const made = (await server.monitor.sensors.enrol(request))!;
  return { id: made.sensor_id, credential: made.credential, hostName };
}

/** A sensor that has rotated once, as every current sensor does after its enrolment. */
async function rotated() {
  const sensor = await enrol();
  const { body } = await rotate(sensor.credential);
  assert.equal((await plan(body.credential)).status, 200);
  return { ...sensor, first: sensor.credential, credential: body.credential };
}

test('the credential of an enrolment has no expiry, so an older sensor is never locked out; the plan requests a rotation', async () => {
  const { credential } = await enrol();
  const { body } = await plan(credential);
  assert.equal(body.credential_version, 1);
  assert.deepEqual(body.credential, { expires_at: null, rotate: true });
  await clock.set(clock.nowMs() + 4000 * dayMs);
  assert.equal((await plan(credential)).status, 200);
});

test('the old credential is valid until the new one was used once; lost answers can be requested again', async () => {
  const { credential } = await enrol();
  const lost = await rotate(credential);
  assert.equal(lost.status, 201);
  assert.match(lost.body.credential, /^svcsen_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/);
  assert.equal(lost.body.expires_at, new Date(clock.nowMs() + 90 * dayMs).toISOString());
  assert.equal((await plan(credential)).status, 200, 'nothing was used, so nothing ended');

  assert.deepEqual((({ status, code }) => [status, code])(await rotate(credential)), [
    429,
    'rotation_throttled',
  ]);
  await clock.set(clock.nowMs() + 11_000);
  const next = (await rotate(credential)).body.credential;
  assert.equal((await plan(lost.body.credential)).code, 'unauthenticated', 'the one that was lost is gone');
  assert.equal((await plan(credential)).status, 200);

  const used = await plan(next);
  assert.equal(used.status, 200);
  const old = await plan(credential);
  assert.deepEqual([old.status, old.code], [401, 'credential_replaced']);
  assert.equal((await rotate(credential)).status, 401);
  const again = await plan(next);
  assert.deepEqual(again.body.credential, {
    expires_at: new Date(clock.nowMs() + 90 * dayMs).toISOString(),
    rotate: false,
  });
  assert.deepEqual((({ status, code }) => [status, code])(await rotate(next)), [409, 'rotation_not_due']);
});

test('the plan requests a rotation at two thirds of the lifetime, and the credential expires at its end', async () => {
  const { credential } = await rotated();
  const issuedMs = clock.nowMs();
  const rotateAt = async (days: number) => {
    await clock.set(issuedMs + days * dayMs);
    return (await plan(credential)).body.credential?.rotate;
  };
  assert.equal(await rotateAt(59.9), false);
  assert.equal(await rotateAt(60.1), true);
  assert.equal(await rotateAt(89.9), true);
  await clock.set(issuedMs + 90 * dayMs);
  const ended = await plan(credential);
  assert.deepEqual([ended.status, ended.code], [401, 'credential_expired']);
  assert.match(ended.body.error!.message, /ended at 20\d\d-.*Enrol the sensor again/);
  assert.equal((await rotate(credential)).status, 401, 'a credential that has ended renews nothing');
});

test('the state of an expired or replaced credential is reported only to callers with its secret', async () => {
  const { first } = await rotated();
  assert.equal((await plan(first)).code, 'credential_replaced');
  const guessed = first.slice(0, -1) + (first.at(-1) === 'A' ? 'B' : 'A');
  assert.equal((await plan(guessed)).code, 'unauthenticated');
});

test('a credential rotates only its own sensor, for any request', async () => {
  const one = await rotated();
  const other = await rotated();
  await clock.set(clock.nowMs() + 61 * dayMs);
  const named = await call('POST', '/credential', other.credential, { sensor_id: one.id });
  assert.equal(named.status, 422);
  const next = (await rotate(other.credential)).body.credential;
  assert.equal((await plan(next)).status, 200);
  assert.equal((await plan(other.credential)).code, 'credential_replaced');
  assert.equal((await plan(one.credential)).status, 200, "the other's credential stands");
  const { rows } = await server.database.pool.query(
    'select count(*)::int as n from sensor_credentials where sensor_id = $1 and replaced_at is null',
    [one.id],
  );
  assert.deepEqual(rows, [{ n: 1 }]);
});

test('two hosts with one credential: the first to rotate locks the other out, and an alert opens', async () => {
  const { id, credential, hostName } = await rotated();
  await clock.set(clock.nowMs() + 61 * dayMs);
  const [here, there] = await Promise.all([rotate(credential), rotate(credential)]);
  assert.deepEqual([here.status, there.status].sort(), [201, 429], 'one of two that come at once');
  const next = (here.status === 201 ? here : there).body.credential;
  await plan(next);
  assert.equal((await plan(credential)).code, 'credential_replaced');
  const misused = async () =>
    (await server.monitor.sensors.listHealth()).find((one) => one.id === id)!.credential.misusedAgeSeconds;
  assert.equal(await misused(), null, 'a request that was under way is no copy');
  await clock.set(clock.nowMs() + 301_000);
  await plan(credential);
  assert.equal(await misused(), 0);
  await server.monitor.alerts.loop.runOnce();
  const open = await server.monitor.alerts.listOpen(server.siteId, 100);
  const copied = open.filter((one) => one.kind === 'credential_copied');
  assert.deepEqual(
    copied.map((one) => one.subjectName),
    [hostName],
  );
});

test('an operator requests a rotation, which stays in the plan until it has happened', async () => {
  const { id, credential } = await rotated();
  assert.equal((await plan(credential)).body.credential.rotate, false);
  const { sensors } = server.monitor;
  assert.equal(await sensors.requestRotation(systemActor, server.siteId, id), true);
  assert.equal(await sensors.requestRotation(systemActor, server.siteId + 1, id), false);
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  await assert.rejects(async () => sensors.requestRotation(viewer, server.siteId, id), /role is read-only/);
  assert.equal((await plan(credential)).body.credential.rotate, true);
  const next = (await rotate(credential)).body.credential;
  assert.equal((await plan(credential)).body.credential.rotate, true, 'issued, and not used yet');
  await plan(next);
  assert.equal((await plan(next)).body.credential.rotate, false);
});

test("the sensor's page shows the expiry of its credential, and its button requests a rotation", async () => {
  const operator = await server.signIn('operator');
  const older = await enrol();
  const page = async (id: number) => (await operator.get(`/sites/${server.siteId}/sensors/${id}`)).text;
  assert.match(await page(older.id), /No expiry: the sensor has not rotated it yet/);
  const { id, credential } = await rotated();
  const ends = new Date(clock.nowMs() + 90 * dayMs).toISOString().slice(0, 10);
  assert.match(await page(id), new RegExp(`expires [^<]*${ends}`));
  const asked = await operator.post(`/sites/${server.siteId}/sensors/${id}/rotate`);
  assert.equal(asked.status, 303);
  assert.match(await page(id), /Rotation requested/);
  assert.equal((await plan(credential)).body.credential.rotate, true);
  assert.equal((await operator.post(`/sites/${server.siteId}/sensors/999999/rotate`)).status, 404);
  const viewer = await server.signIn('viewer');
  assert.equal((await viewer.post(`/sites/${server.siteId}/sensors/${id}/rotate`)).status, 403);
});

test('a removed sensor has no valid credential, neither the one in use nor the next', async () => {
  const { id, credential, first } = await rotated();
  await clock.set(clock.nowMs() + 61 * dayMs);
  const next = (await rotate(credential)).body.credential;
  await server.monitor.sensors.revoke(systemActor, server.siteId, id);
  for (const refused of [first, credential, next])
    assert.deepEqual((({ status, code }) => [status, code])(await plan(refused)), [401, 'unauthenticated']);
  assert.equal((await rotate(credential)).status, 401);
});

test('rotations leave audit entries of the sensor, without a secret', async () => {
  const { id, credential } = await rotated();
  const { rows } = await server.database.pool.query(
    `select operation, actor_kind, actor_id, source_address, before, after from audit_entries
     where subject_kind = 'sensor' and subject_id = $1 order by id`,
    [String(id)],
  );
  assert.deepEqual(
    rows.map((row) => [row.operation, row.actor_kind, row.actor_id, row.source_address !== null]),
    [
      ['sensor.enrol', 'sensor', String(id), false],
      ['sensor.rotate_credential', 'sensor', String(id), true],
      ['sensor.replace_credential', 'sensor', String(id), true],
    ],
  );
  const text = JSON.stringify(rows);
  assert.ok(text.includes(credential.split('_')[1]!), 'by its id');
  assert.ok(!text.includes(credential.split('_').slice(2).join('_')));
});

test('a credential that expires soon is alerted', async () => {
  const { hostName } = await rotated();
  const issuedMs = clock.nowMs();
  const ending = async (days: number) => {
    await clock.set(issuedMs + days * dayMs);
    await server.monitor.alerts.loop.runOnce();
    const open = await server.monitor.alerts.listOpen(server.siteId, 100);
    return open.filter((one) => one.kind === 'credential_ending' && one.subjectName === hostName);
  };
  assert.equal((await ending(74)).length, 0);
  const [episode] = await ending(75.5);
  assert.equal(episode?.details.days_left, 14);
});
