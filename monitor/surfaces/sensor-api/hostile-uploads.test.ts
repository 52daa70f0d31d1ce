// Slow: sends hundreds of uploads, some of them large.
// Own process: it measures the memory of the receivers.
/** Uploads that no sensor makes: random and changed protobuf, which is answered and costs nothing that stays. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type DetectorMinute, type IncidentObservation, metrics } from '#contracts/sensor-api/detection.ts';
import { encodeLive } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { hostileProtobuf } from '#service-kit/testing/hostile-protobuf.ts';

/** Set for a long run, such as 20000. */
const requests = Number(process.env.SVC_TEST_HOSTILE_REQUESTS ?? 240);
const seed = Number(process.env.SVC_TEST_HOSTILE_SEED ?? 14);
/** Unreadable uploads that one sensor may send in a minute, and its concurrent requests (monitor/intake/throttle.ts). */
const malformedMax = 30;
const slots = 8;
const mebibyte = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapMiB(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / mebibyte;
}

const attackedAtMs = testMinute * 1000;
const epochId = '0193a1f0-0000-7000-8000-000000000002';
const detector: DetectorMinute = {
  ...{ ticks: 60, epochId, overflowed: 0, incidentsLost: 0, mergedFrames: 3 },
  rows: [
    {
      ...{ address: '192.0.2.10', direction: 'inbound', attackBytes: 15_000_000, attackPackets: 250_000 },
      ...{ oneSecond: metrics.map((_, i) => i * 10), tenSeconds: metrics.map((_, i) => i) },
    },
  ],
};

function incident(): IncidentObservation {
  return {
    ...{ id: randomUUID(), revision: 2, capture: 'eth0', target: { kind: 'host', value: '192.0.2.10' } },
    ...{ direction: 'inbound', class: 'syn_flood', severity: 'attack', state: 'active', recoveredAtMs: null },
    vectors: [{ class: 'syn_flood', packetsShare: 0.97, bytesShare: 0.5, ports: [80, 443] }],
    ...{
      startedAtMs: attackedAtMs,
      detectedAtMs: attackedAtMs + 3000,
      lastObservedAtMs: attackedAtMs + 13_000,
    },
    current: { bps: 12_000_000, pps: 25_000 },
    peak: { bps: 12_800_000, bpsAtMs: attackedAtMs + 4000, pps: 26_000, ppsAtMs: attackedAtMs + 5000 },
    ...{ totals: { bytes: 15_000_000, packets: 250_000 }, coverage: 'complete' },
    ...{ deviceKey: 'eth0|52:54:00:00:00:01', threshold: { metric: 'syn_pps', value: 10_000 } },
    remotes: [{ prefix: '203.0.113.0/24', share: 0.25 }],
    seconds: [{ atMs: attackedAtMs + 12_000, bps: 12_000_000, pps: 25_000 }],
    ...{ drill: false, hasEvidence: false },
  };
}

/** Every part of an upload, each time with the next number of its spool. */
function wholeUpload(spool: ReturnType<typeof createSpool>): Uint8Array {
  const spoofed = [
    { deviceKey: 'br0.7|52:54:00:00:00:01', address: '2001:db8::2', bytes: 2 ** 40, packets: 7 },
  ];
  const upload = spool.upload(
    [
      captureMinute({
        hosts: [host('192.0.2.10', 5, 6, 'eth0|52:54:00:00:00:01')],
        usage: [usageRow()],
        detector,
      }),
      captureMinute({ capture: 'br0', role: 'bridge', spoofed }),
    ],
    [{ fromMinute: testMinute - 600, toMinute: testMinute - 60, capture: '', reason: 'sensor_down' }],
  );
  const neighbour = { segment: 'br0', mac: '52:54:00:00:00:02', address: '', isRouter: true };
  const link = {
    name: 'br0',
    index: 5,
    mac: '52:54:00:00:00:01',
    kind: 'bridge',
    isUp: true,
    mtu: 1500,
  } as const;
  const addresses = ['192.0.2.1/24', '2001:db8::1/64'];
  return encodeUpload({
    ...upload,
    incidents: [incident()],
    epochs: [{ id: epochId, sinceMs: attackedAtMs, prefixes: ['192.0.2.10', '2001:db8::/64'] }],
    inventory: {
      observedAtMs: testMinute * 1000 + 5,
      interfaces: [{ ...link, master: '', parent: '', vlan: 7, addresses }],
      neighbours: [neighbour],
      ...{ interfacesLeftOut: 0, neighboursLeftOut: 3 },
    },
    probes: [
      {
        ...{ probe: 7, minute: testMinute, firstSentMs: 5_010, sent: 6, lost: 1 },
        ...{ rtt: { minUs: 1, medianUs: 1_900, maxUs: 60_000_000 }, failure: 'timeout' },
      },
    ],
  });
}

function liveUpload(): Uint8Array {
  const { totals } = captureMinute();
  const startedAtMs = Math.floor(Date.now() / 10_000) * 10_000 - 20_000;
  const window = { capture: 'eth0', role: 'uplink', startedAtMs, observedMs: 9000 } as const;
  const hosts = [{ address: '192.0.2.10', rxBytes: 100, txBytes: 1, packets: 1 }];
  const bytes = { spoolPendingBytes: 1, spoolBytesMax: 2, diskFreeBytes: 3, diskBytes: 4 };
  return encodeLive({
    ...{ runId: randomUUID(), sensorVersion: '0.1.0' },
    windows: [{ ...window, totals, hosts, hostsLeftOut: 0 }],
    condition: { observedAtMs: startedAtMs, spoolPendingUploads: 1, isPaused: false, ...bytes },
  });
}

test('random and changed uploads are answered, none with a fault of ours, and hold no place, memory or later upload', async () => {
  await using server = await startMonitorServer();
  const { monitor, siteId } = server;
  let enrolled = 0;
  const enrol = async () => {
    enrolled += 1;
    const { token } = await monitor.sensors.createToken(systemActor, siteId);
    const names = { host_name: `host-${enrolled}`, node: `hv-${enrolled}`, sensor_version: '0.1.24' };
    return (await monitor.sensors.enrol({ token, ...names }))!.credential;
  };
  const post = async (credential: string, route: string, body: Uint8Array) => {
    const answer = await fetch(`${server.url}/agent/v1/${route}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${credential}`,
        'content-type': 'application/x-protobuf',
        'content-encoding': 'zstd',
      },
      body: Buffer.from(compressUpload(body)),
    });
    return { status: answer.status, text: await answer.text() };
  };
  let credential = await enrol();
  let unreadable = 0;
  const statuses = new Map<number, number>();
  const attack = async (route: string, valid: () => Uint8Array, count: number, of: number) => {
    for (const body of hostileProtobuf(valid, count, of)) {
      if (unreadable === malformedMax) {
        unreadable = 0;
        credential = await enrol();
      }
      const { status, text } = await post(credential, route, body);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status >= 400) unreadable += 1;
      // The clock of the sensor is ahead: it keeps the upload.
      const isExpected = status < 500 || (status === 503 && text.includes('clock_ahead'));
      assert.ok(
        isExpected && status !== 429 && status !== 401,
        `${status} ${text} to ${body.toString('hex')}`,
      );
    }
    await monitor.inbox.drain();
  };
  const round = async (count: number, of: number) => {
    const spool = createSpool();
    await attack('telemetry', () => wholeUpload(spool), Math.ceil(count * 0.7), of);
    await attack('live', liveUpload, Math.ceil(count * 0.2), of + 1);
    const urgent = () => encodeUpload({ ...spool.upload([]), incidents: [incident()] });
    await attack('incidents', urgent, Math.ceil(count * 0.1), of + 2);
  };
  // The first round fills caches.
  await round(Math.ceil(requests / 4), seed);
  const before = heapMiB();
  await round(requests, seed + 3);
  assert.ok(heapMiB() - before < 16, `${heapMiB() - before} MiB`);
  assert.ok(statuses.get(200)! > requests / 20, `some are taken: ${[...statuses]}`);
  assert.ok(statuses.get(400)! > requests / 20, `some are refused: ${[...statuses]}`);

  const fresh = await enrol();
  const spools = Array.from({ length: slots }, createSpool);
  const answers = await Promise.all(spools.map((spool) => post(fresh, 'telemetry', wholeUpload(spool))));
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(slots).fill(200),
  );
  await monitor.inbox.drain();
  const { rows } = await server.database.pool.query(
    "select last_error, encode(body, 'hex') as body from inbox_uploads where state = 'pending'",
  );
  assert.deepEqual(rows, [], 'what was acknowledged is applied');
});
