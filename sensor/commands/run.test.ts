import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type FakeMonitor,
  receiptFor,
  refusal,
  startFakeMonitor,
  uploadIn,
} from '#sensor/testing/fake-monitor.ts';
import { ethernetFrame, udp4 } from '#sensor/testing/frame-sender.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

const svc = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const identity = {
  sensor_id: 5,
  site_id: 1,
  site_name: 'Test site',
  credential: `svcsen_5_${'s'.repeat(43)}`,
};
const plan = {
  plan_version: 1,
  application_usage_version: 1,
  application_protocol_version: 1,
  local_cidrs: ['10.9.0.0/16'],
  protected_targets: [],
};

/** A monitor that enrols sensors, sends plans and accepts uploads. */
function startMonitor(t: TestContext): Promise<FakeMonitor> {
  return startFakeMonitor(t, (request) => {
    if (request.path.endsWith('/enrol')) return { status: 201, body: identity };
    if (request.headers.authorization !== `Bearer ${identity.credential}`) return refusal(401, 'who is this');
    if (request.path.endsWith('/plan')) return { status: 200, body: plan };
    return receiptFor(request);
  });
}

/** A recording of one minute with a packet of 128 bytes of IP ten times a second. */
function recording(t: TestContext): string {
  const head = Buffer.from('d4c3b2a1020004000000000000000000ffff000001000000', 'hex');
  const frame = ethernetFrame(0x0800, udp4('10.9.0.1', '198.51.100.2', 100));
  const records = Array.from({ length: 600 }, (_, i) => {
    const record = Buffer.alloc(16);
    record.writeUInt32LE(1_700_000_040 + Math.floor(i / 10), 0);
    record.writeUInt32LE((i % 10) * 100_000, 4);
    record.writeUInt32LE(frame.length, 8);
    record.writeUInt32LE(frame.length, 12);
    return Buffer.concat([record, frame]);
  });
  const path = join(temporaryFolder(t), 'recording.pcap');
  writeFileSync(path, Buffer.concat([head, ...records]));
  return path;
}

function runSensor(t: TestContext, environment: Record<string, string>) {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', svc, 'sensor', 'run'], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  const waiting: { text: string; resolve: () => void }[] = [];
  child.stderr!.on('data', (piece: Buffer) => {
    text += piece.toString();
    for (const one of waiting) if (text.includes(one.text)) one.resolve();
  });
  return {
    child,
    said: () => text,
    /** Resolves when standard error holds the text. */
    says: (wanted: string) =>
      new Promise<void>((resolve) => {
        if (text.includes(wanted)) resolve();
        else waiting.push({ text: wanted, resolve });
      }),
    ended: new Promise<number | null>((resolve) => child.once('close', resolve)),
  };
}

test('the sensor enrols, replays a recording, says so, and on SIGTERM delivers the open minute as partial', async (t) => {
  const monitor = await startMonitor(t);
  const state = join(temporaryFolder(t), 'state');
  const environment = {
    SVC_MONITOR_URL: monitor.url,
    SVC_SENSOR_STATE_DIR: state,
    SVC_SENSOR_REPLAY: recording(t),
    SVC_SENSOR_ENROLMENT_TOKEN: 'token-1',
    SVC_SENSOR_NODE: 'node-a',
  };
  const first = runSensor(t, environment);
  // Frames count from the first plan on, once the recording is open.
  const counts = Promise.all([first.says('plan taken'), first.says('a recorded capture is replayed')]);
  await Promise.race([counts, first.ended]);
  first.child.kill('SIGTERM');
  assert.equal(await first.ended, 0, first.said());
  assert.equal(
    JSON.parse(readFileSync(join(state, 'credential.json'), 'utf8')).credential,
    identity.credential,
  );
  const uploads = monitor.requests.filter((request) => request.path.endsWith('/telemetry')).map(uploadIn);
  const minutes = uploads.flatMap((upload) => upload.minutes);
  assert.ok(minutes.length >= 1, first.said());
  for (const { capture, role, observedMs, minute } of minutes) {
    assert.deepEqual([capture, role], ['replay', 'uplink']);
    assert.ok(observedMs < 60_000);
    const gaps = uploads.flatMap((upload) => upload.gaps);
    assert.ok(
      gaps.some((gap) => gap.fromMinute <= minute && minute <= gap.toMinute && gap.reason === 'sensor_down'),
    );
  }

  const second = runSensor(t, { ...environment, SVC_SENSOR_ENROLMENT_TOKEN: 'another token' });
  await Promise.race([second.says('sensor runs'), second.ended]);
  second.child.kill('SIGTERM');
  assert.equal(await second.ended, 0, second.said());
  const enrolments = monitor.requests.filter((request) => request.path.endsWith('/enrol'));
  assert.equal(enrolments.length, 1, 'a token is used only while there is no credential');
});

test('a missing setting is explained in one sentence, with a non-zero exit', async (t) => {
  const monitor = await startMonitor(t);
  const state = join(temporaryFolder(t), 'state');
  const base = { SVC_MONITOR_URL: monitor.url, SVC_SENSOR_STATE_DIR: state };
  const cases: [Record<string, string>, RegExp][] = [
    [base, /^svc: The sensor has nothing to listen to\. Set SVC_SENSOR_CAPTURES/],
    [
      { ...base, SVC_SENSOR_CAPTURES: 'uplink:lo' },
      /^svc: This sensor has no credential .*SVC_SENSOR_ENROLMENT_TOKEN/,
    ],
    [{ ...base, SVC_SENSOR_CAPTURES: 'eth0' }, /^svc: SVC_SENSOR_CAPTURES must be a list/],
    [
      { ...base, SVC_SENSOR_REPLAY: '/no/such/file.pcap', SVC_SENSOR_ENROLMENT_TOKEN: 'x' },
      /svc: SVC_SENSOR_REPLAY: cannot open \/no\/such\/file\.pcap/,
    ],
  ];
  for (const [environment, sentence] of cases) {
    const sensor = runSensor(t, environment);
    assert.equal(await sensor.ended, 1, sensor.said());
    assert.match(sensor.said(), sentence);
    assert.ok(!sensor.said().includes('    at '), 'no stack trace');
  }
  assert.equal(existsSync(join(state, 'spool-1.sqlite')), true);
});
