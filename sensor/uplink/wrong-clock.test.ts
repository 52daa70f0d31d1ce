import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { retentionRefusalMessage } from '#contracts/sensor-api/http.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { createHostTime, createMonitorTime, offsetOf } from '#sensor/host-time/index.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { firstMinute, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createUplink } from './index.ts';

const startMs = firstMinute * 1000;
const monthMs = 30 * 86_400_000;

/** A sensor and a monitor whose clock is right; `isOld`: it knows no `clock_ahead`. */
async function fixture(t: TestContext, isOld = false) {
  const clock = createTestClock(startMs);
  let setByMs = 0;
  const trueMs = () => clock.nowMs() - setByMs;
  const host = createHostTime(clock, clock.monotonicMs, 'boot');
  const options = {
    bytesMax: 16 * 1024 * 1024,
    sensorVersion: '0.1.0',
    kinds: recordKinds,
    clock,
    reporter: silentReporter,
  };
  const directory = temporaryFolder(t);
  const spool = createSpool({ ...options, directory });
  spool.open();
  const stored: number[] = [];
  const received: TelemetryUpload[] = [];
  const judge = (upload: TelemetryUpload): { status: number; json: unknown } => {
    const refused = (status: number, code: string, message: string) => ({
      status,
      json: { error: { code, message } },
    });
    const spoken = [...upload.minutes.map((one) => one.minute), ...upload.gaps.map((gap) => gap.toMinute)];
    if (spoken.some((minute) => minute * 1000 > trueMs() + 300_000)) {
      return isOld
        ? refused(422, 'telemetry_refused', 'minute telemetry lies in the future; set the clock of this host')
        : refused(503, 'clock_ahead', 'set the clock');
    }
    if (spoken.some((minute) => minute * 1000 < trueMs() - 3 * monthMs))
      return refused(422, 'telemetry_refused', retentionRefusalMessage);
    stored.push(...upload.minutes.map((one) => (one.minute - firstMinute) / 60));
    const { spoolId: spool_id, sequence } = upload;
    return { status: 200, json: { spool_id, sequence, receipt: 'accepted' } };
  };
  // Answers at once, so that time alone decides what happens next.
  const client: MonitorClient = {
    url: 'http://monitor.example',
    async request({ body }) {
      const upload = decodeUpload(decompressUpload(body as Uint8Array, 'zstd'));
      received.push(upload);
      return { ...judge(upload), headers: new Headers() };
    },
  };
  const log: string[] = [];
  const monitorTime = createMonitorTime(host);
  const uplink = createUplink({
    spool,
    client,
    clock,
    reporter: createReporter({ program: 'sensor', write: (line) => log.push(line) }),
    random: () => 1,
    time: {
      host,
      monitor: monitorTime,
      ask: async () => monitorTime.note(new Date(trueMs()).toUTCString(), host.read()),
    },
  });
  await uplink.start();
  t.after(async () => {
    await uplink.stop();
    spool.close();
  });
  const turns = async () => {
    for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    ...{ spool, stored, log, received },
    set(byMs: number) {
      setByMs += byMs;
      clock.stepWall(byMs);
    },
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 5000) {
        await clock.advance(5000);
        await turns();
      }
    },
    /** A minute that ended now, as the clock of now stamps it. */
    collect() {
      const minute = Math.floor(clock.nowMs() / 60_000) * 60 - 60;
      const stampedBy = { bootId: 'boot', offsetMs: offsetOf(host.read()), since: minute };
      spool.append([sampleMinute(minute, 7)], [], { commit: `${trueMs()}`, stampedBy });
      uplink.wake();
    },
  };
}

for (const isOld of [false, true])
  for (const stepMs of [3_600_000, 10 * 365 * 86_400_000, -7_200_000, -10 * 365 * 86_400_000])
    test(`what a clock set ${stepMs} ms off stamped is kept from ${isOld ? 'an old' : 'the'} monitor and sent with its own time once it is set right`, async (t) => {
      const f = await fixture(t, isOld);
      await f.pass(60_000);
      f.collect();
      await f.pass(5000);
      assert.deepEqual(f.stored, [0]);
      f.set(stepMs);
      await f.pass(55_000);
      f.collect();
      await f.pass(60_000);
      f.collect();
      await f.pass(30_000);
      assert.deepEqual(f.stored, [0], 'it waits');
      assert.equal(f.spool.status().pendingUploads, 2);
      assert.equal(
        f.log.filter((line) => line.includes('clock of this host is wrong')).length,
        1,
        'said once',
      );
      f.set(-stepMs);
      await f.pass(30_000);
      f.collect();
      await f.pass(20_000);
      assert.deepEqual(f.stored, [0, 1, 2, 3]);
      assert.equal(f.spool.status().pendingUploads, 0);
    });

test('a clock that stays two hours behind is taken as it is after an hour', async (t) => {
  const f = await fixture(t);
  f.set(-7_200_000);
  await f.pass(60_000);
  f.collect();
  await f.pass(3_500_000);
  assert.deepEqual(f.stored, []);
  await f.pass(200_000);
  assert.deepEqual(f.stored, [-120]);
});

test('NET-7.1: what is too old by a clock that is right is a gap, and what is ahead of a monitor whose clock is wrong waits', async (t) => {
  const f = await fixture(t);
  const old = firstMinute - 100 * 86_400;
  f.spool.append([sampleMinute(old, 7)], []);
  await f.pass(70_000);
  assert.equal(f.spool.status().pendingUploads, 0);
  const kinds = f.received.map((upload) => upload.gaps.map((gap) => gap.reason));
  assert.deepEqual(kinds, [[], ['refused']], 'the gap is refused in its turn, and given up');
});
