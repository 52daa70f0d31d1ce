import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { CaptureCondition } from '#contracts/sensor-api/live.ts';
import { compressUpload, encodeUpload, type TelemetryGap } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { captureMinute, createSpool, host } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';
import { type StillClock, stopDatabaseClock } from '#monitor/testing/still-clock.ts';

type Minute = ReturnType<typeof captureMinute>;

let server: MonitorServer;
let clock: StillClock;
let visitor: Visitor;
let startMs = 0;
let hosts = 0;

before(async () => {
  server = await startMonitorServer();
  startMs = Math.floor(Date.now() / 60_000) * 60_000 - 120_000;
  clock = await stopDatabaseClock(server.database, startMs);
  visitor = await server.signIn('viewer');
});
after(() => server[Symbol.asyncDispose]());

/** Faulty behaviour of a sensor, from the fault on. */
interface Fault {
  /** Null: it sends no upload for this minute. */
  upload?(captures: Minute[], minute: number): { minutes: Minute[]; gaps: TelemetryGap[] } | 'refused' | null;
  captures?: CaptureCondition[];
  aheadMs?: number;
  /** An older sensor does not report its captures. */
  isOld?: boolean;
}

const roles = { eth0: 'uplink', br0: 'bridge' } as const;
const faultMs = 121_000;
const listening = (name: 'eth0' | 'br0', isListening = true) => ({ name, role: roles[name], isListening });

async function enrol(hostName: string): Promise<EnrolledSensor> {
  const { sensors } = server.monitor;
  const { token } = await sensors.createToken(systemActor, server.siteId);
  const made = await sensors.enrol({ token, host_name: hostName, node: hostName, sensor_version: '0.1.0' });
  return (await sensors.authenticate(made!.credential))!;
}

/**
 * Simulates six minutes of a sensor in steps of 15 s. Returns when the alert opened and when the page showed the text.
 */
async function play(names: readonly ('eth0' | 'br0')[], kind: string, words: string, fault: Fault) {
  const { sensors, inbox, alerts } = server.monitor;
  hosts += 1;
  const base = clock.nowMs() + 60_000 - (clock.nowMs() % 60_000);
  const hostName = `${kind}-${hosts}`;
  await clock.set(base);
  const sensor = await enrol(hostName);
  const spool = createSpool();
  const found: { alertMs: number | null; pageMs: number | null; early: string[] } = {
    alertMs: null,
    pageMs: null,
    early: [],
  };
  for (let atMs = 0; atMs <= faultMs + 195_000 && found.alertMs === null; atMs += 15_000) {
    const isFaulty = atMs >= faultMs;
    await clock.set(base + atMs + 3000);
    if (atMs % 60_000 === 0 && atMs > 0) {
      const minute = (base + atMs) / 1000 - 60;
      const whole = names.map((capture) =>
        captureMinute({ minute, capture, role: roles[capture], totals: { ipPackets: 10_000 } }),
      );
      const told = isFaulty && fault.upload ? fault.upload(whole, minute) : { minutes: whole, gaps: [] };
      if (told === 'refused') {
        const old = spool.upload([captureMinute({ minute: 1_600_000_020 })]);
        await assert.rejects(inbox.receive(sensor, compressUpload(encodeUpload(old)), 'zstd'));
      } else if (told) {
        await inbox.receive(
          sensor,
          compressUpload(encodeUpload(spool.upload(told.minutes, told.gaps))),
          'zstd',
        );
        await inbox.drain();
      }
    }
    if (atMs % 30_000 === 0)
      await sensors.noteCondition(sensor.id, {
        observedAtMs: clock.nowMs() + (isFaulty ? (fault.aheadMs ?? 0) : 0),
        ...{
          spoolPendingBytes: 0,
          spoolBytesMax: 1,
          spoolPendingUploads: 0,
          diskFreeBytes: 1,
          diskBytes: 1,
          isPaused: false,
        },
        ...(fault.isOld
          ? {}
          : { captures: (isFaulty && fault.captures) || names.map((name) => listening(name)) }),
      });
    await alerts.loop.runOnce();
    const open = (await alerts.listOpen(server.siteId, 100)).filter((one) =>
      one.subjectName.endsWith(hostName),
    );
    if (!isFaulty) found.early.push(...open.map((one) => one.kind));
    if (open.some((one) => one.kind === kind)) found.alertMs = atMs + 3000 - faultMs;
    if (!isFaulty && atMs !== 60_000) continue;
    const csv = (await visitor.get(`/sites/${server.siteId}/sensors?format=csv&table=sensors`)).text;
    const state = csv.split('\n').find((line) => line.startsWith(`${hostName},`))!;
    if (!isFaulty) assert.match(state, /,reporting,/, 'no trouble before the fault');
    if (found.pageMs !== null || !state.includes(words)) continue;
    found.pageMs = atMs + 3000 - faultMs;
    const page = (await visitor.get(`/sites/${server.siteId}/sensors/${sensor.id}`)).text;
    assert.ok(!page.includes('Reporting:'), 'the page of the sensor shows it too');
  }
  // The next test needs a world without open alerts.
  await sensors.revoke(systemActor, server.siteId, sensor.id);
  return found;
}

/** `pageMs`: limit for the page; longer when only complete minutes show the fault. */
function judge(found: Awaited<ReturnType<typeof play>>, pageMs = 60_000): void {
  assert.deepEqual(found.early, [], 'no alert before the fault');
  assert.ok(found.alertMs !== null && found.alertMs <= 180_000, `alerted after ${found.alertMs} ms`);
  assert.ok(found.pageMs !== null && found.pageMs <= pageMs, `on the page after ${found.pageMs} ms`);
}

const failed = (capture: string, minute: number): TelemetryGap => ({
  fromMinute: minute,
  toMinute: minute,
  capture,
  reason: 'capture_failed',
});
const without = (name: 'eth0' | 'br0') => (captures: Minute[], minute: number) => ({
  minutes: captures.filter((one) => one.capture !== name),
  gaps: [failed(name, minute)],
});

for (const [name, other] of [
  ['eth0', 'br0'],
  ['br0', 'eth0'],
] as const)
  test(`a dead ${roles[name]} is alerted within three minutes and on the page within one`, async () => {
    const captures = [listening(name, false), listening(other)];
    judge(await play(['eth0', 'br0'], 'capture_dead', `${name} down`, { upload: without(name), captures }));
  });

test('a dead capture of an older sensor is detected by its gaps, with and without another capture', async () => {
  const beside = await play(['eth0', 'br0'], 'capture_dead', 'br0 down', {
    upload: without('br0'),
    isOld: true,
  });
  judge(beside, 65_000);
  const alone = await play(['eth0'], 'capture_dead', 'eth0 down', {
    upload: (_, minute) => ({ minutes: [], gaps: [failed('', minute)] }),
    isOld: true,
  });
  judge(alone, 65_000);
});

for (const [words, aheadMs] of [
  ['clock 31 s ahead', 31_000],
  ['clock 10 years behind', -10 * 365.25 * 86_400_000],
] as const)
  test(`a sensor whose ${words} is alerted within three minutes and on the page within one`, async () => {
    judge(await play(['eth0'], 'clock_skew', words, { aheadMs }));
  });

for (const [name, what, loss] of [
  ['eth0', 'by the kernel', { kernelDropped: 200 }],
  ['br0', 'by the parser', { parserDropped: 200 }],
] as const)
  test(`NET-2.2.6: packets of the ${roles[name]} lost ${what} are alerted within three minutes`, async () => {
    const upload = (captures: Minute[]) => ({
      minutes: captures.map((one) =>
        one.capture === name
          ? {
              ...one,
              totals: {
                ...one.totals,
                ...loss,
                packets: one.totals.packets + ('parserDropped' in loss ? 200 : 0),
              },
            }
          : one,
      ),
      gaps: [],
    });
    judge(await play(['eth0', 'br0'], 'capture_loss', `${name} loses packets`, { upload }), 65_000);
  });

test('refused minutes of a sensor are alerted within three minutes', async () => {
  judge(await play(['br0'], 'minutes_refused', 'minutes refused', { upload: () => 'refused' }), 65_000);
});

test('impossible counters are left out, alerted within three minutes and on the page within one', async () => {
  const upload = (captures: Minute[]) => ({
    minutes: captures.map((one) => ({
      ...one,
      hosts: [host('192.0.2.10', 4e12, 0), host('192.0.2.11', 9, 9)],
    })),
    gaps: [],
  });
  judge(await play(['br0'], 'counters_left_out', 'counters ignored', { upload }), 65_000);
});

test('a sensor that has contact but sends no minute is alerted within three minutes', async () => {
  // The first missing minute was due a minute after the fault.
  judge(await play(['eth0'], 'minutes_missing', 'no minutes', { upload: () => null }), 120_000);
});

test('a restarted sensor, and a capture that is removed from its settings, open no alert', async () => {
  const down = (minute: number): TelemetryGap => ({ ...failed('', minute), reason: 'sensor_down' });
  const restarted = await play(['eth0'], 'capture_dead', 'eth0 down', {
    upload: (captures, minute) => ({ minutes: captures, gaps: [down(minute)] }),
    isOld: true,
  });
  assert.deepEqual([restarted.alertMs, restarted.pageMs], [null, null]);
  const removed = await play(['eth0', 'br0'], 'capture_dead', 'br0 down', {
    upload: (captures) => ({ minutes: captures.slice(0, 1), gaps: [] }),
    captures: [listening('eth0')],
  });
  assert.deepEqual([removed.alertMs, removed.pageMs], [null, null]);
});
