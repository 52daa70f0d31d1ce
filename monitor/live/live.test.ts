import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { encodeLive, type LiveWindow } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { readConfig } from '#monitor/config.ts';
import { addSensor } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import { createLive, createPostgresStore, type Live } from './index.ts';

let world: World;
let sensor: { id: number; siteId: number; hostName: string; node: string };
before(async () => {
  nowMs = Math.floor(Date.now() / 10_000) * 10_000;
  world = await createWorld();
  sensor = { id: await addSensor(world), siteId: world.siteId, hostName: 'node-1', node: 'node-1' };
});
after(() => world[Symbol.asyncDispose]());

const liveOf = (historySeconds: number, historyMax: number) =>
  createLive({ store: createPostgresStore(() => world.database.db, { historySeconds, historyMax }) });

let nowMs: number;

function liveWindow(ageSeconds: number, bytes = 100): LiveWindow {
  const totals = {
    packets: 5,
    ipPackets: 2,
    ipBytes: bytes,
    nonIpPackets: 0,
    parserDropped: 3,
    kernelDropped: 1,
    detailTruncated: 0,
  };
  const hosts = [
    { address: '2001:db8::1', rxBytes: bytes, txBytes: 1, packets: 1 },
    { address: '192.0.2.10', rxBytes: 0, txBytes: 65_575, packets: 1 },
  ];
  const startedAtMs = nowMs - ageSeconds * 1000;
  return { capture: 'eth0', role: 'uplink', startedAtMs, observedMs: 9000, totals, hosts, hostsLeftOut: 4 };
}

const post = (live: Live, windows: LiveWindow[], runId = randomUUID()) =>
  live.receive(sensor, compressUpload(encodeLive({ runId, sensorVersion: '0.1.0', windows })), 'zstd');

async function emptied(): Promise<void> {
  await world.database.pool.query('delete from live_windows');
}

test('NET-2.5: a live window is stored once, even if sent repeatedly, and read back unchanged', async () => {
  await emptied();
  const live = liveOf(3600, 100);
  const runId = randomUUID();
  const window = liveWindow(20);
  assert.deepEqual(await post(live, [window, liveWindow(10)], runId), {
    stored: 2,
    duplicates: 0,
    too_old: 0,
  });
  const again = await Promise.all([
    post(live, [window], runId),
    post(live, [{ ...window, observedMs: 1 }], runId),
  ]);
  assert.deepEqual(again, Array(2).fill({ stored: 0, duplicates: 1, too_old: 0 }));
  const [, read] = (await live.listWindows(sensor.siteId, nowMs - 60_000, 10)).windows;
  const { totals, ...rest } = window;
  const { packets, ipBytes, parserDropped, kernelDropped } = totals;
  assert.deepEqual(read, { sensorId: sensor.id, ...rest, packets, ipBytes, parserDropped, kernelDropped });
  assert.deepEqual(
    (await live.listRates(sensor.siteId)).map((rate) => [rate.capture, rate.startedAtMs]),
    [['eth0', nowMs - 10_000]],
  );
  // Another run of the sensor saw another part of the same ten seconds.
  assert.equal((await post(live, [window])).stored, 1);
});

test('NET-8: the live history has no expired window, and at most its length, the newest', async () => {
  await emptied();
  const live = liveOf(600, 5);
  const receipt = await post(live, [liveWindow(700), liveWindow(-180), liveWindow(500), liveWindow(30)]);
  assert.deepEqual(receipt, { stored: 2, duplicates: 0, too_old: 2 });
  for (const age of [20, 40, 50, 60, 70, 80]) await post(live, [liveWindow(age)]);
  const ages = (await live.listWindows(sensor.siteId, 0, 100)).windows.map(
    (one) => (nowMs - one.startedAtMs) / 1000,
  );
  // The sixth is at the end of the history, where another capture's may have gone.
  assert.deepEqual(ages, [20, 30, 40, 50]);
  const { rows } = await world.database.pool.query('select count(*)::int as n from live_windows');
  assert.equal(rows[0].n, 5);
  const shorter = liveOf(60, 5);
  assert.equal(
    (await shorter.listWindows(sensor.siteId, 0, 100)).windows.length <= 4,
    true,
    'reads filter by age',
  );
  await world.database.pool.query("update live_windows set started_at = started_at - interval '1 hour'");
  assert.equal(await live.prune(), 5, 'a site whose sensors are silent');
});

test('NET-8.7: by default windows are kept for 3,600 seconds, and 20,000 of a site', async () => {
  await emptied();
  const bounds = readConfig({});
  const live = liveOf(bounds.liveHistorySeconds, bounds.liveHistoryMax);
  const receipt = await post(live, [liveWindow(3_500), liveWindow(3_700)]);
  assert.deepEqual([receipt.stored, receipt.too_old], [1, 1]);
  await emptied();
  await world.database.pool.query(
    `insert into live_windows (site_id, sensor_id, run_id, capture, role, started_at, observed_ms, packets, ip_bytes,
       parser_dropped, kernel_dropped, merged_frames, addresses, rx_bytes, tx_bytes, host_packets, hosts_left_out)
     select $1, $2, gen_random_uuid(), 'eth0', 'uplink', to_timestamp($3), 9000, 1, 1, 0, 0, 0, '{}', '{}', '{}', '{}', 0
     from generate_series(1, 20001)`,
    [sensor.siteId, sensor.id, (nowMs - 20_000) / 1000],
  );
  const store = createPostgresStore(() => world.database.db, {
    historySeconds: bounds.liveHistorySeconds,
    historyMax: bounds.liveHistoryMax,
  });
  const range = { siteId: sensor.siteId, sinceMs: 0, limit: 1e6, hostsMax: 1e6, bytesMax: 1e9 };
  assert.equal((await store.list(range)).windows.length, 20_000);
});

test('NET-2.5.3, NET-8: a read has 100,000 host rows, and of one more the oldest windows are left out', async () => {
  await emptied();
  const live = liveOf(3600, 1000);
  const hosts = Array.from({ length: 1000 }, (_, i) => ({
    ...{ address: `203.0.${100 + (i >> 8)}.${i & 255}`, rxBytes: 1, txBytes: 1, packets: 1 },
  }));
  const full = (age: number) => ({ ...liveWindow(age), hosts });
  for (let age = 20; age < 1020; age += 250)
    await post(
      live,
      Array.from({ length: 25 }, (_, i) => full(age + 10 * i)),
    );
  const read = () => live.listWindows(sensor.siteId, 0, 1000);
  const whole = await read();
  assert.deepEqual([whole.windows.length, whole.isLimited], [100, false]);
  await post(live, [{ ...full(1020), hosts: hosts.slice(0, 1) }]);
  assert.equal((await read()).isLimited, true);
});

test('NET-2.5.3: a limited read has every capture of a bucket or none', async () => {
  for (const [historyMax, limit, isLimited] of [
    [100, 8, true],
    [8, 100, false],
  ] as const) {
    await emptied();
    const live = liveOf(3600, historyMax);
    const captures = ['eth0', 'eth1', 'br0'];
    await post(
      live,
      captures.flatMap((capture) => [10, 20, 30].map((age) => ({ ...liveWindow(age), capture }))),
    );
    const read = await live.listWindows(sensor.siteId, nowMs - 60_000, limit);
    const times = [10, 20].flatMap((age) => captures.map(() => nowMs - age * 1000));
    assert.deepEqual([read.windows.map((one) => one.startedAtMs), read.isLimited], [times, isLimited]);
    const { points } = await live.readSite(sensor.siteId, nowMs - 60_000, nowMs + 30_000);
    if (!isLimited)
      assert.deepEqual(
        points.map(({ captures: count }) => count),
        [3, 3],
      );
  }
});

test('live windows more than 5 min ahead are clock_ahead, and the reported clock of the sensor is stored', async () => {
  await emptied();
  const told: number[] = [];
  const live = createLive({
    store: createPostgresStore(() => world.database.db, { historySeconds: 3600, historyMax: 10 }),
    noteCondition: async (_, { observedAtMs }) => void told.push(observedAtMs),
  });
  const condition = {
    observedAtMs: nowMs + 3_600_000,
    ...{
      spoolPendingBytes: 0,
      spoolBytesMax: 1,
      spoolPendingUploads: 0,
      diskFreeBytes: 1,
      diskBytes: 1,
      isPaused: false,
    },
  };
  const upload = { runId: randomUUID(), sensorVersion: '0.1.0', windows: [liveWindow(-3600)], condition };
  await assert.rejects(live.receive(sensor, compressUpload(encodeLive(upload)), 'zstd'), (error) =>
    hasCode(error, 'telemetry.clock_ahead'),
  );
  assert.deepEqual(told, [condition.observedAtMs]);
  assert.deepEqual((await live.listWindows(sensor.siteId, 0, 10)).windows, []);
  // A sensor without a capture has no windows, but reports its condition.
  const nothing = { ...upload, windows: [] };
  assert.equal((await live.receive(sensor, compressUpload(encodeLive(nothing)), 'zstd')).stored, 0);
  assert.equal(told.length, 2);
});

test('NET-2.5: impossible rows are left out of live windows and counted, and the rest of the upload is stored', async () => {
  await emptied();
  const noted: [number, number][] = [];
  const live = createLive({
    store: createPostgresStore(() => world.database.db, { historySeconds: 3600, historyMax: 10 }),
    noteSetAside: async (sensorId, rows) => void noted.push([sensorId, rows]),
  });
  const good = liveWindow(20);
  const full = { address: '192.0.2.20', rxBytes: 45e10, txBytes: 45e10, packets: 2e7 };
  const absurd = [
    { address: '192.0.2.21', rxBytes: 45e10 + 1, txBytes: 0, packets: 2e7 },
    { address: '192.0.2.22', rxBytes: 0, txBytes: 2 ** 53 - 1, packets: 2e12 },
    { address: '192.0.2.23', rxBytes: 65_576, txBytes: 0, packets: 1 },
  ];
  const impossible = {
    ...liveWindow(30),
    totals: { ...good.totals, ipBytes: 9e11 + 2, ipPackets: 2e7, packets: 2e7 + 3 },
  };
  const receipt = await post(live, [
    { ...good, hosts: [...good.hosts, full, ...absurd] },
    impossible,
    liveWindow(40),
  ]);
  assert.equal(receipt.stored, 2);
  assert.deepEqual(noted, [[sensor.id, 4]]);
  const { windows } = await live.listWindows(sensor.siteId, nowMs - 60_000, 10);
  assert.deepEqual(
    windows.map((one) => [one.startedAtMs, one.hosts, one.hostsLeftOut]),
    [
      [good.startedAtMs, [...good.hosts, full], good.hostsLeftOut + 3],
      [nowMs - 40_000, good.hosts, good.hostsLeftOut],
    ],
  );
});

test('an invalid live upload is refused with the reason', async () => {
  const live = liveOf(3600, 100);
  const bad: [Partial<LiveWindow>, RegExp][] = [
    [{ startedAtMs: nowMs + 1 }, /ten-second boundary/],
    [{ observedMs: 10_001 }, /observed_ms/],
    [{ capture: '' }, /blank/],
    [{ hosts: Array(2).fill({ address: '192.0.2.1', rxBytes: 0, txBytes: 0, packets: 0 }) }, /twice/],
    [{ hosts: [{ address: 'x', rxBytes: 0, txBytes: 0, packets: 0 }] }, /canonical/],
  ];
  for (const [change, message] of bad) {
    await assert.rejects(post(live, [{ ...liveWindow(0), ...change }]), (error: Error) => {
      return hasCode(error, 'telemetry.malformed') && message.test(error.message);
    });
  }
  const twice = post(live, [liveWindow(0), liveWindow(0)]);
  await assert.rejects(twice, (error: Error) => hasCode(error, 'telemetry.malformed'));
  await assert.rejects(live.receive(sensor, Buffer.from('nonsense'), undefined), (error: Error) =>
    hasCode(error, 'telemetry.malformed'),
  );
});
