import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import type { SensorCondition } from '#contracts/sensor-api/live.ts';
import { decodeLive, type LiveUpload, type LiveWindow } from '#contracts/sensor-api/live-codec.ts';
import { decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { type FakeAnswer, type ReceivedRequest, startFakeMonitor } from '#sensor/testing/fake-monitor.ts';
import { passTime, untilWaiting } from '#sensor/testing/pass-time.ts';
import { LiveUplink } from './index.ts';

const startMs = 1_764_000_000_000;

function liveWindow(startedAtMs: number, capture = 'eth0'): LiveWindow {
  const totals = {
    packets: 3,
    ipPackets: 3,
    ipBytes: 400,
    nonIpPackets: 0,
    parserDropped: 0,
    kernelDropped: 0,
    detailTruncated: 0,
  };
  const hosts = [{ address: '192.0.2.10', rxBytes: 300, txBytes: 100, packets: 3 }];
  return { capture, role: 'uplink', startedAtMs, observedMs: 10_000, totals, hosts, hostsLeftOut: 0 };
}

const bodyOf = (request: ReceivedRequest): LiveUpload =>
  decodeLive(decompressUpload(request.body, request.headers['content-encoding']));

async function fixture(
  t: TestContext,
  answer: (request: ReceivedRequest, index: number) => FakeAnswer,
  condition: () => SensorCondition | null = () => null,
) {
  const monitor = await startFakeMonitor(t, answer);
  const clock = createTestClock(startMs);
  const log: string[] = [];
  const reporter = createReporter({ program: 'sensor', write: (line) => log.push(line) });
  const client = createMonitorClient(monitor.url);
  const uplink = new LiveUplink({
    client,
    sensorVersion: '0.1.0',
    clock,
    reporter,
    condition,
  });
  await uplink.start();
  t.after(() => uplink.stop());
  return {
    monitor,
    clock,
    log,
    uplink,
    /** Advances time in small steps until this many requests have been answered. */
    async until(count: number) {
      await passTime(clock, () => monitor.requests.length >= count, 200);
      await untilWaiting(clock);
    },
  };
}

test('NET-2.5, NET-9.1: windows are posted together, only when the plan announces them', async (t) => {
  const { uplink, monitor, clock, until } = await fixture(t, () => ({ status: 200, body: {} }));
  uplink.offer(liveWindow(startMs - 20_000));
  await clock.advance(30_000);
  assert.equal(monitor.requests.length, 0);
  assert.equal(uplink.status().waiting, 0, 'nothing accumulates for an older monitor');
  uplink.announce(true);
  const windows = ['eth0', 'br0'].map((capture) => liveWindow(startMs + 20_000, capture));
  for (const window of windows) uplink.offer(window);
  await until(1);
  assert.equal(monitor.requests[0]!.path, '/agent/v1/live');
  const upload = bodyOf(monitor.requests[0]!);
  assert.deepEqual(upload.windows, windows);
  assert.match(upload.runId, /^[0-9a-f-]{36}$/);
});

test('failed windows are posted again with newer ones until they are a minute old, then dropped and counted', async (t) => {
  const isNew = (one: LiveWindow) => one.startedAtMs > startMs;
  const { uplink, monitor, clock, until, log } = await fixture(t, (request) => ({
    status: bodyOf(request).windows.some(isNew) ? 200 : 503,
    body: {},
  }));
  uplink.announce(true);
  uplink.offer(liveWindow(startMs - 10_000));
  await until(1);
  const failedAtMs = clock.monotonicMs();
  await until(2);
  assert.ok(clock.monotonicMs() - failedAtMs < 10_000, 'it does not wait for another window');
  uplink.offer(liveWindow(startMs));
  await until(3);
  assert.deepEqual(
    bodyOf(monitor.requests[2]!).windows.map((window) => window.startedAtMs - startMs),
    [-10_000, 0],
  );
  await clock.advance(75_000);
  uplink.offer(liveWindow(Math.floor(clock.nowMs() / 10_000) * 10_000 - 10_000));
  while (uplink.status().posted === 0) await until(monitor.requests.length + 1);
  assert.ok(
    bodyOf(monitor.requests.at(-1)!).windows.every(isNew),
    'windows older than a minute are not sent',
  );
  assert.equal(uplink.status().dropped, 2);
  assert.equal(log.filter((line) => line.includes('live windows do not reach')).length, 1, 'logged once');
});

test('a refused window is not posted again, and the uplink waits', async (t) => {
  const { uplink, monitor, clock, until } = await fixture(t, () => ({
    status: 404,
    body: { error: { code: 'not_found', message: 'no such path' } },
  }));
  uplink.announce(true);
  uplink.offer(liveWindow(startMs - 10_000));
  await until(1);
  await clock.advance(20_000);
  uplink.offer(liveWindow(startMs));
  await clock.advance(20_000);
  assert.equal(monitor.requests.length, 1);
  assert.equal(uplink.status().dropped, 1);
});

test('NET-9.1: the condition of the sensor is posted twice a minute without any traffic, and at once when it changes', async (t) => {
  const known = {
    ...{
      spoolPendingBytes: 7,
      spoolBytesMax: 1000,
      spoolPendingUploads: 1,
      diskFreeBytes: 5000,
      diskBytes: 9000,
    },
    captures: [{ name: 'eth0', role: 'uplink' as const, isListening: true, isCountedInKernel: false }],
  };
  let isPaused = false;
  const condition = () => ({ ...known, observedAtMs: startMs, isPaused });
  const { uplink, monitor, clock, until } = await fixture(t, () => ({ status: 200, body: {} }), condition);
  await clock.advance(60_000);
  assert.equal(monitor.requests.length, 0, 'no monitor asked for it yet');
  uplink.announce(true);
  await until(1);
  assert.deepEqual(bodyOf(monitor.requests[0]!).condition, { ...known, observedAtMs: startMs, isPaused });
  const sentAtMs = clock.nowMs();
  await until(2);
  assert.ok(clock.nowMs() - sentAtMs >= 29_000, `${clock.nowMs() - sentAtMs} ms`);
  isPaused = true;
  uplink.tellCondition();
  await until(3);
  assert.equal(bodyOf(monitor.requests[2]!).condition?.isPaused, true);
  assert.ok(clock.nowMs() - sentAtMs < 45_000, 'it did not wait for its turn');
});
