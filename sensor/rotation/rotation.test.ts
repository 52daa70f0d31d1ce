import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { readIdentity, type SensorIdentity, storeIdentity } from '#sensor/enrolment/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, type ReceivedRequest, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { passTime, untilWaiting } from '#sensor/testing/pass-time.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { Rotation } from './index.ts';

const credentialOf = (letter: string) => `svcsen_${letter.repeat(16)}_${letter.repeat(43)}`;
const [old, next, newer] = [credentialOf('a'), credentialOf('b'), credentialOf('c')];
const refuse = (code: string): FakeAnswer => ({ status: 401, body: { error: { code, message: code } } });
const issue = (credential: string): FakeAnswer => ({
  status: 201,
  body: { credential, expires_at: '2027-01-01T00:00:00.000Z' },
});
const taken: FakeAnswer = { status: 200, body: {} };
const askPlan = { method: 'GET', path: '/plan', timeoutMs: 5000 } as const;

async function fixture(
  t: TestContext,
  answer: (credential: string, request: ReceivedRequest, index: number) => FakeAnswer,
  stored: Partial<SensorIdentity> = {},
) {
  const stateDirectory = temporaryFolder(t);
  const identity = { sensorId: 3, siteId: 7, siteName: 'Berlin', credential: old, ...stored };
  storeIdentity(stateDirectory, identity);
  const monitor = await startFakeMonitor(t, (request, index) =>
    answer(request.headers.authorization!.replace('Bearer ', ''), request, index),
  );
  const clock = createTestClock(0);
  const log: string[] = [];
  const rotation = new Rotation({
    client: createMonitorClient(monitor.url),
    identity,
    stateDirectory,
    clock,
    reporter: createReporter({ program: 'sensor', write: (line) => log.push(line) }),
  });
  t.after(() => rotation.stop());
  return {
    monitor,
    clock,
    log,
    rotation,
    stateDirectory,
    kept: () => readIdentity(stateDirectory)!,
    /** Advances time until the log contains this. */
    says: (text: string) => passTime(clock, () => log.some((line) => line.includes(text)), 1000),
    async asked(count: number) {
      await passTime(clock, () => monitor.requests.length >= count, 1000);
      await untilWaiting(clock);
    },
  };
}

test('a new credential is on disk beside the old one before it is used, and the old one stays as the previous', async (t) => {
  const onDisk: SensorIdentity[] = [];
  const f = await fixture(t, (credential, { path }) => {
    onDisk.push(f.kept());
    if (path.endsWith('/credential')) return issue(next);
    return credential === next ? taken : refuse('credential_replaced');
  });
  await f.rotation.start();
  assert.equal(f.monitor.requests.length, 0, 'nothing is requested before the plan says so');
  f.rotation.follow(true);
  await f.says('the credential was rotated');
  assert.deepEqual(
    onDisk.map(({ credential, nextCredential }) => [credential, nextCredential]),
    [
      [old, undefined],
      [old, next],
    ],
  );
  const { credential, nextCredential, previousCredential } = f.kept();
  assert.deepEqual([credential, nextCredential, previousCredential], [next, undefined, old]);
  assert.equal((await f.rotation.client.request(askPlan)).status, 200);
});

test('a request that was sent with the old credential is repeated with the new one', async (t) => {
  let isUsed = false;
  const f = await fixture(t, (credential, { path }) => {
    if (path.endsWith('/credential')) return issue(next);
    isUsed ||= credential === next;
    return credential === (isUsed ? next : old) ? taken : refuse('credential_replaced');
  });
  // Its first use was answered, and the sensor was killed before it received the answer.
  const storedFirst = { ...f.kept(), nextCredential: next };
  storeIdentity(f.stateDirectory, storedFirst);
  isUsed = true;
  const again = new Rotation({
    client: createMonitorClient(f.monitor.url),
    identity: storedFirst,
    stateDirectory: f.stateDirectory,
    clock: f.clock,
    reporter: createReporter({ program: 'sensor', write: (line) => f.log.push(line) }),
  });
  assert.equal((await again.client.request({ ...askPlan, path: '/telemetry' })).status, 200);
  assert.equal(f.kept().credential, next);
});

test('an older monitor, or one without a due rotation, is asked once', async (t) => {
  for (const status of [404, 409]) {
    const f = await fixture(t, () => ({ status, body: { error: { code: 'x', message: 'x' } } }));
    await f.rotation.start();
    f.rotation.follow(true);
    while (f.monitor.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await f.clock.advance(3_600_000);
    await f.rotation.stop();
    assert.equal(f.monitor.requests.length, 1);
    assert.equal(f.kept().credential, old);
  }
});

test('after a lost or invalid answer the request is repeated with growing delays', async (t) => {
  const answers: FakeAnswer[] = [
    { status: 0, cut: true },
    { status: 503, body: {} },
    { status: 201, body: { credential: 'x\r\ny: z' } },
    { status: 429, body: {}, headers: { 'retry-after': '30' } },
    issue(next),
    taken,
  ];
  const f = await fixture(t, (_credential, _request, index) => answers[Math.min(index, answers.length - 1)]!);
  await f.rotation.start();
  f.rotation.follow(true);
  await f.says('the credential was rotated');
  assert.equal(f.monitor.requests.length, 6);
  assert.equal(f.kept().credential, next);
});

test('a credential that can not be stored is not used', async (t) => {
  const f = await fixture(t, (credential, { path }) =>
    path.endsWith('/credential') ? issue(next) : credential === old ? taken : refuse('unauthenticated'),
  );
  // A directory in place of the file stops root too.
  mkdirSync(join(f.stateDirectory, 'credential.json.new'));
  await f.rotation.start();
  f.rotation.follow(true);
  await f.says('could not be rotated, retrying');
  await f.asked(3);
  assert.deepEqual(
    [...new Set(f.monitor.requests.map(({ path, headers }) => `${path} ${headers.authorization}`))],
    [`/agent/v1/credential Bearer ${old}`],
  );
  assert.equal((await f.rotation.client.request(askPlan)).status, 200);
});

test('a monitor restored from a backup is called with the previous credential, which is rotated again', async (t) => {
  const f = await fixture(
    t,
    (credential, { path }) => {
      if (credential !== old && credential !== newer) return refuse('unauthenticated');
      return path.endsWith('/credential') ? issue(newer) : taken;
    },
    { credential: next, previousCredential: old },
  );
  await f.rotation.start();
  assert.equal((await f.rotation.client.request(askPlan)).status, 200);
  assert.match(f.log.join('\n'), /knows the previous credential only/);
  assert.deepEqual([f.kept().credential, f.kept().nextCredential], [old, next], 'neither is forgotten');
  await f.says('was refused and is dropped');
  f.rotation.follow(true);
  await f.says('the credential was rotated');
  assert.equal(f.kept().credential, newer);
});

test('after a proxy’s refusal, a failure or a stop no other credential is tried and none is dropped', async (t) => {
  const stored = { credential: next, previousCredential: old };
  for (const answer of [
    { status: 401, body: '<html>' },
    { status: 403, body: {} },
    { status: 503, body: {} },
    refuse('credential_expired'),
  ]) {
    const f = await fixture(t, () => answer, stored);
    assert.equal((await f.rotation.client.request(askPlan)).status, answer.status);
    assert.equal(f.monitor.requests.length, 1);
    assert.equal(f.kept().credential, next);
    assert.equal(f.kept().previousCredential, old);
  }
});

test('a credential counts as used only after a successful answer', async (t) => {
  const f = await fixture(
    t,
    (credential) => (credential === old ? refuse('unauthenticated') : { status: 503, body: {} }),
    { nextCredential: next },
  );
  assert.equal((await f.rotation.client.request(askPlan)).status, 503);
  assert.deepEqual([f.kept().credential, f.kept().nextCredential], [old, next]);
});
