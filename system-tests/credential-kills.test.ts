// Slow: kills programs while a credential changes.
/** A sensor killed at any step of a rotation restarts with a valid credential. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { readIdentity, type SensorIdentity, storeIdentity } from '#sensor/enrolment/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { Rotation } from '#sensor/rotation/index.ts';

const program = fileURLToPath(new URL('../sensor/testing/rotating-sensor.ts', import.meta.url));
/** More calls than a rotation makes. */
const never = 1000;
const timeoutMs = 60_000;

let server: MonitorServer;
let folder: string;
before(async () => {
  server = await startMonitorServer();
  folder = mkdtempSync(join(tmpdir(), 'svc-rotation-'));
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

async function enrol(name: string): Promise<string> {
  const { token } = await server.monitor.sensors.createToken(systemActor, server.siteId);
  const request = { token, host_name: name, node: name, sensor_version: '0.1.0' };
  const made = (await server.monitor.sensors.enrol(request))!;
  const stateDirectory = join(folder, name);
  mkdirSync(stateDirectory);
  storeIdentity(stateDirectory, {
    sensorId: made.sensor_id,
    siteId: made.site_id,
    siteName: made.site_name,
    credential: made.credential,
  });
  return stateDirectory;
}

function rotateAndDie(
  stateDirectory: string,
  killAfter: number,
): Promise<{ signal: string | null; said: string }> {
  const orders = JSON.stringify({ url: server.url, stateDirectory, killAfter });
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', program, orders],
      (error, stdout, stderr) => resolve({ signal: error?.signal ?? null, said: stdout + stderr }),
    );
  });
}

function startAgain(stateDirectory: string) {
  const rotated = Promise.withResolvers<void>();
  const rotation = new Rotation({
    client: createMonitorClient(server.url),
    identity: readIdentity(stateDirectory)!,
    stateDirectory,
    clock: systemClock,
    reporter: createReporter({
      program: 'sensor',
      write: (line) => line.includes('the credential was rotated') && rotated.resolve(),
    }),
  });
  const readPlan = () => rotation.client.request({ method: 'GET', path: '/plan', timeoutMs });
  return { rotation, readPlan, rotated: rotated.promise };
}

/** A rotation that never ends fails here instead of blocking the test. */
async function within<Result>(work: Promise<Result>, message: string): Promise<Result> {
  const ended = new AbortController();
  const late = systemClock.wait(60_000, ended.signal).then(() => assert.ok(ended.signal.aborted, message));
  try {
    return (await Promise.race([work, late])) as Result;
  } finally {
    ended.abort();
  }
}

async function credentialsOf({ sensorId }: SensorIdentity) {
  await server.monitor.sensors.settled();
  const { rows } = await server.database.pool.query<{ id: string }>(
    'select id from sensor_credentials where sensor_id = $1 and replaced_at is null',
    [sensorId],
  );
  return rows.map((row) => row.id);
}

test('a sensor killed after any request or write of a rotation has a valid credential and finishes the rotation', async () => {
  const whole = await rotateAndDie(await enrol('whole'), never);
  const calls = Number(/^rotated (\d+)\n$/.exec(whole.said)?.[1]);
  assert.ok(calls >= 20, `two requests and two files are ${calls} calls: ${whole.said}`);
  for (let killAfter = 0; killAfter <= calls; killAfter += 1) {
    const stateDirectory = await enrol(`killed-${killAfter}`);
    const { signal, said } = await rotateAndDie(stateDirectory, killAfter);
    assert.equal(signal ?? 'none', killAfter < calls ? 'SIGKILL' : (signal ?? 'none'), said);
    const { rotation, readPlan, rotated } = startAgain(stateDirectory);
    const plan = await readPlan();
    assert.equal(plan.status, 200, `killed after call ${killAfter}`);
    // A credential that was issued just now is not issued again at once.
    await server.database.pool.query(
      "update sensor_credentials set issued_at = issued_at - interval '1 minute' where first_used_at is null",
    );
    const { credential: state } = plan.json as { credential: { rotate: boolean } };
    const isUnfinished = state.rotate || readIdentity(stateDirectory)!.nextCredential !== undefined;
    rotation.follow(state.rotate);
    await rotation.start();
    if (isUnfinished) await within(rotated, `killed after call ${killAfter}, it is not finished`);
    await rotation.stop();
    const identity = readIdentity(stateDirectory)!;
    assert.equal((await readPlan()).status, 200);
    assert.deepEqual(
      await credentialsOf(identity),
      [identity.credential.split('_')[1]],
      `killed after call ${killAfter}`,
    );
    assert.equal(identity.nextCredential, undefined);
  }
});

test('two hosts with one credential file: both continue until one of them rotates, then only that one', async () => {
  const original = await enrol('original');
  const copy = join(folder, 'copy');
  mkdirSync(copy);
  storeIdentity(copy, readIdentity(original)!);
  const hosts = { original: startAgain(original), copy: startAgain(copy) };
  assert.equal((await hosts.original.readPlan()).status, 200);
  assert.equal((await hosts.copy.readPlan()).status, 200);
  hosts.original.rotation.follow(true);
  await hosts.original.rotation.start();
  await within(hosts.original.rotated, 'not rotated');
  await hosts.original.rotation.stop();
  await server.monitor.sensors.settled();
  assert.equal((await hosts.original.readPlan()).status, 200);
  const refused = await hosts.copy.readPlan();
  assert.equal(refused.status, 401);
  assert.match(JSON.stringify(refused.json), /credential_replaced.*by a copy of it/);
});
