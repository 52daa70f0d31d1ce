import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, refusal, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { enrol, readIdentity } from './index.ts';

const given = { sensor_id: 3, site_id: 7, site_name: 'Berlin', credential: `svcsen_3_${'a'.repeat(43)}` };

async function fixture(t: TestContext, answers: FakeAnswer[], patienceMs = 60_000) {
  const monitor = await startFakeMonitor(t, (_, index) => answers[Math.min(index, answers.length - 1)]!);
  const stateDirectory = join(temporaryFolder(t), 'state');
  const clock = { ...systemClock, wait: async () => {} };
  const log: string[] = [];
  const call = () =>
    enrol({
      client: createMonitorClient(monitor.url),
      stateDirectory,
      token: 'token-1',
      hostName: 'host.example',
      node: 'node-a',
      sensorVersion: '0.1.0',
      clock,
      reporter: createReporter({ program: 'sensor', write: (line) => log.push(line) }),
      patienceMs,
    });
  return { monitor, stateDirectory, call, log };
}

test('NET-5.3: a token is exchanged for a credential, readable by its owner only', async (t) => {
  const f = await fixture(t, [{ status: 201, body: given }]);
  assert.equal(readIdentity(f.stateDirectory), null);
  const identity = await f.call();
  assert.deepEqual(identity, { sensorId: 3, siteId: 7, siteName: 'Berlin', credential: given.credential });
  assert.deepEqual(readIdentity(f.stateDirectory), identity);
  const [request] = f.monitor.requests;
  assert.equal(request!.path, '/agent/v1/enrol');
  assert.deepEqual(JSON.parse(request!.body.toString()), {
    token: 'token-1',
    host_name: 'host.example',
    node: 'node-a',
    sensor_version: '0.1.0',
  });
  assert.equal(statSync(join(f.stateDirectory, 'credential.json')).mode & 0o777, 0o600);
  assert.equal(statSync(f.stateDirectory).mode & 0o777, 0o700);
});

test('enrolment retries while the monitor starts, but not after a refusal', async (t) => {
  const f = await fixture(t, [
    { status: 0, cut: true },
    { status: 0, cut: true },
    refusal(503, 'starting'),
    { status: 201, body: given },
  ]);
  await f.call();
  assert.equal(f.monitor.requests.length, 4);
  assert.equal(f.log.filter((line) => line.includes('waiting for the monitor')).length, 1, f.log.join(''));
  const refused = await fixture(t, [refusal(401, 'the token was used')]);
  await assert.rejects(refused.call(), (error: Error & { code?: string }) => {
    return error.code === 'enrolment.refused' && error.message.includes('the token was used');
  });
  assert.equal(refused.monitor.requests.length, 1);
  assert.equal(readIdentity(refused.stateDirectory), null);
});

test('enrolment for a node with a sensor reports what to do, and that the token stays usable', async (t) => {
  const f = await fixture(t, [refusal(409, 'Node hv-1 already has the sensor of host a. Remove it.')]);
  await assert.rejects(f.call(), {
    code: 'enrolment.refused',
    message:
      /Node hv-1 already has the sensor of host a\. Remove it\. The token stays usable for its hour\.$/,
  });
});

test('an answer without a valid credential is refused, also one that would split a header', async (t) => {
  for (const body of [{}, { ...given, credential: 'x' }, { ...given, credential: 'svcsen_3_a\r\nx: y' }]) {
    const f = await fixture(t, [{ status: 201, body }]);
    await assert.rejects(f.call(), { code: 'enrolment.refused' });
  }
});

test('a timeout is reported with the URL', async (t) => {
  const f = await fixture(t, [{ status: 0, cut: true }], 0);
  await assert.rejects(f.call(), { code: 'monitor.unreachable' });
});

test('a damaged credential file is reported, not overwritten', async (t) => {
  const f = await fixture(t, [{ status: 201, body: given }]);
  await f.call();
  const path = join(f.stateDirectory, 'credential.json');
  chmodSync(path, 0o600);
  writeFileSync(path, '{"sensor_id": 3');
  assert.throws(() => readIdentity(f.stateDirectory), { code: 'enrolment.damaged' });
  assert.equal(readFileSync(path, 'utf8'), '{"sensor_id": 3');
});

test('a state directory that is not writable is reported before the token is used', async (t) => {
  const f = await fixture(t, [{ status: 201, body: given }]);
  // A file in place of the directory stops root too.
  writeFileSync(f.stateDirectory, '');
  await assert.rejects(f.call(), { code: 'enrolment.unwritable', message: /EEXIST.*SVC_SENSOR_STATE_DIR/ });
  assert.equal(f.monitor.requests.length, 0);
});
