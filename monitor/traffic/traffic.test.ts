import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry-codec.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  type SiteWorld,
  testMinute,
} from '#monitor/testing/index.ts';
import { joinMinutes } from './address-minute.ts';

let monitor: MonitorWorld;
before(async () => {
  monitor = await createMonitorWorld();
});
after(() => monitor[Symbol.asyncDispose]());

const address = '192.0.2.10';

/** One minute of the address: `[rx, tx, coverage]`, or `gap`. */
async function readMinute(world: SiteWorld, minute = testMinute) {
  const [read] = await world.traffic.readAddressMinutes(world.siteId, address, minute, minute + 60);
  return read!.isGap ? 'gap' : [read!.rxBytes, read!.txBytes, read!.coverage];
}

const capture = (name: string, role: 'uplink' | 'bridge', rx: number, tx: number, part: object = {}) =>
  captureMinute({ capture: name, role, hosts: [host(address, rx, tx)], ...part });

test('NET-2.4.2: the same traffic at one, two and three captures counts the same', async () => {
  const seen: unknown[] = [];
  for (const captures of [1, 2, 3]) {
    const world = await monitor.atNewSite();
    const minutes = [
      capture('eth0', 'uplink', 5000, 700),
      capture('br0', 'bridge', 5000, 700),
      capture('br1', 'bridge', 5000, 700),
    ].slice(0, captures);
    await world.apply(createSpool().upload(minutes));
    const site = await world.traffic.readSiteTraffic(
      world.siteId,
      testMinute * 1000,
      testMinute * 1000 + 60_000,
      60,
    );
    seen.push([await readMinute(world), site.inBps, site.outBps, site.addresses]);
  }
  assert.deepEqual(seen[0], [[5000, 700, 1], [(5000 * 8) / 60], [(700 * 8) / 60], [1]]);
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual(seen[2], seen[0]);
});

test('NET-2.4.2: the strongest capture counts for both directions, even when another saw more in one direction', async () => {
  const world = await monitor.atNewSite();
  await world.apply(
    createSpool().upload([capture('eth0', 'uplink', 5000, 10), capture('br0', 'bridge', 4000, 900)]),
  );
  assert.deepEqual(await readMinute(world), [5000, 10, null], 'NET-2.4.3: no capture has both maxima');
});

test('NET-2.4.3: coverage is the time listened, lowered by kernel drops and unknown after parser loss', async () => {
  const coverageOf = async (part: object) => {
    const world = await monitor.atNewSite();
    await world.apply(createSpool().upload([capture('eth0', 'uplink', 5, 5, part)]));
    const read = await readMinute(world);
    return read[2];
  };
  assert.equal(await coverageOf({}), 1);
  assert.equal(await coverageOf({ observedMs: 15_000 }), 0.25);
  assert.equal(await coverageOf({ totals: captureMinute({ totals: { kernelDropped: 25 } }).totals }), 0.8);
  assert.equal(await coverageOf({ totals: captureMinute({ totals: { parserDropped: 1 } }).totals }), null);
});

test('a minute that was not collected is a gap; a minute without packets at a capture that knows the address is zero', async () => {
  const world = await monitor.atNewSite();
  const spool = createSpool();
  const at = (offset: number) => testMinute + offset * 60;
  const quiet = (offset: number, part: object = {}) =>
    spool.upload([captureMinute({ minute: at(offset), ...part })]);
  const stranger = await world.enrol('node-2');
  await world.send(quiet(0));
  await world.send(spool.upload([capture('eth0', 'uplink', 5, 6, { minute: at(1) })]));
  await world.send(quiet(2));
  await world.send(quiet(3, { observedMs: 30_000 }));
  // Minute 4 is missing here, while another host's sensor, which never saw the address, had a capture.
  await world.send(createSpool().upload([captureMinute({ minute: at(4) })]), stranger);
  await world.inbox.drain();
  const read = await world.traffic.readAddressMinutes(world.siteId, address, at(0), at(5));
  assert.deepEqual(
    read.map((entry) => (entry.isGap ? 'gap' : [entry.rxBytes, entry.packets, entry.coverage])),
    ['gap', [5, 10, 1], [0, 0, 1], [0, 0, 0.5], 'gap'],
  );
  const later = await world.traffic.readAddressMinutes(world.siteId, address, at(2), at(3));
  const { captureId, ...quietMinute } = later[0] as { captureId: number };
  assert.ok(captureId > 0);
  assert.deepEqual(quietMinute, {
    isGap: false,
    minute: at(2),
    rxBytes: 0,
    txBytes: 0,
    packets: 0,
    coverage: 1,
    loss: null,
  });
});

test('NET-2.4.3: what was not observed as a whole says why, where a gap or a loss of packets tells', async () => {
  const world = await monitor.atNewSite();
  const spool = createSpool();
  const at = (offset: number) => testMinute + offset * 60;
  const seen = (offset: number, part: object = {}) =>
    capture('eth0', 'uplink', 5, 6, { minute: at(offset), ...part });
  const gap = (offset: number, reason: GapReason, of = '') => ({
    ...{ fromMinute: at(offset), toMinute: at(offset), capture: of, reason },
  });
  const dropped = captureMinute({ totals: { kernelDropped: 25 } }).totals;
  await world.apply(
    spool.upload(
      [seen(0), seen(2, { observedMs: 30_000 }), seen(3, { totals: dropped }), seen(5)],
      [
        gap(1, 'sensor_down'),
        gap(2, 'capture_failed', 'eth0'),
        gap(4, 'spool_damaged'),
        gap(5, 'refused', 'br0'),
      ],
    ),
  );
  const read = await world.traffic.readAddressMinutes(world.siteId, address, at(0), at(7));
  assert.deepEqual(
    read.map((entry) => [entry.isGap, entry.loss]),
    [
      [false, null],
      [true, 'sensor_down'],
      [false, 'capture_failed'],
      [false, 'packets_lost'],
      [true, 'spool_damaged'],
      [false, null],
      [true, null],
    ],
  );
});

test('a minute with a gap is never complete', async () => {
  const world = await monitor.atNewSite();
  const gap = { fromMinute: testMinute, toMinute: testMinute, reason: 'clock_step' as const };
  const spool = createSpool();
  await world.apply(spool.upload([capture('eth0', 'uplink', 5, 6)], [{ ...gap, capture: 'br0' }]));
  assert.deepEqual(await readMinute(world), [5, 6, 1], "another capture's gap");
  await world.apply(spool.upload([], [{ ...gap, capture: '' }]));
  assert.deepEqual(await readMinute(world), [5, 6, null]);
});

test('partial reports of one minute add their time', async () => {
  const world = await monitor.atNewSite();
  const gap = {
    fromMinute: testMinute,
    toMinute: testMinute,
    capture: '',
    reason: 'sensor_down' as const,
  };
  await world.apply(
    createSpool().upload([capture('eth0', 'uplink', 5, 6, { observedMs: 15_000 })]),
    createSpool().upload([capture('eth0', 'uplink', 50, 60, { observedMs: 30_000 })], [gap]),
  );
  assert.deepEqual(await readMinute(world), [55, 66, 0.75]);
});

test('NET-2.2.6: collected and lost packets of a range are reported', async () => {
  const world = await monitor.atNewSite();
  const totals = { ipPackets: 50, parserDropped: 2, kernelDropped: 3, detailTruncated: 4 };
  await world.apply(createSpool().upload([captureMinute({ totals })]));
  const range = [testMinute * 1000, testMinute * 1000 + 60_000] as const;
  assert.deepEqual(await world.traffic.readCollection(world.siteId, ...range), {
    captureMinutes: 1,
    packets: 52,
    parserDropped: 2,
    kernelDropped: 3,
    detailTruncated: 4,
  });
  const [state] = await world.traffic.listCaptures(world.siteId);
  assert.equal(state?.parserDropped, 2);
  assert.equal(state?.newestMinute, testMinute);
});

test('NET-2.4.2: the count of packets merged by offload is unknown, but bytes are known', async () => {
  const world = await monitor.atNewSite();
  const hosts = [host('192.0.2.10', 5, 6)];
  const next = testMinute + 60;
  await world.apply(
    createSpool().upload([
      captureMinute({ hosts, totals: { mergedFrames: 2 } }),
      captureMinute({ hosts, minute: next }),
    ]),
  );
  const read = await world.traffic.readAddressMinutes(world.siteId, '192.0.2.10', testMinute, next + 60);
  assert.deepEqual(
    read.map((minute) => minute.isGap === false && [minute.rxBytes, minute.packets]),
    [
      [5, null],
      [5, 10],
    ],
  );
});

test("a site's minute is observed and zero when captures saw no traffic, and a gap when none listened", async () => {
  const world = await monitor.atNewSite();
  await world.apply(createSpool().upload([captureMinute()]));
  const traffic = await world.traffic.readSiteTraffic(
    world.siteId,
    testMinute * 1000 - 60_000,
    testMinute * 1000 + 120_000,
    60,
  );
  assert.deepEqual(traffic.inBps, [null, 0, null]);
  assert.deepEqual(traffic.addresses, [null, 0, null]);
});

test("a site's minutes follow facts that arrive later, also when two roll up at once", async () => {
  const world = await monitor.atNewSite();
  const spool = createSpool();
  await world.apply(spool.upload([capture('eth0', 'uplink', 600, 6)]));
  await world.apply(spool.upload([capture('br0', 'bridge', 900, 6)]));
  await world.rows('insert into site_minute_marks (site_id, minute) select $1, to_timestamp($2)', [
    world.siteId,
    testMinute,
  ]);
  await Promise.all([world.facts.rollUp('none'), world.facts.rollUp('none'), world.facts.rollUp('none')]);
  const [row] = await world.rows<object>(
    'select rx_bytes, tx_bytes, addresses from site_minutes where site_id = $1',
    [world.siteId],
  );
  assert.deepEqual(row, { rx_bytes: 900, tx_bytes: 6, addresses: 1 });
  assert.deepEqual(await world.rows('select 1 from site_minute_marks'), []);
});

test('NET-2.4.2: for any set of captures, the chosen bytes are those of one of the strongest', async () => {
  const world = await monitor.atNewSite();
  const names = ['eth0', 'br0', 'br1'];
  const bytes = fc.integer({ min: 0, max: 3 });
  const sighting = fc.record({
    name: fc.constantFrom(...names),
    rx: bytes,
    tx: bytes,
    observedMs: fc.constantFrom(30_000, 60_000),
  });
  let minute = testMinute - 3600;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(sighting, { selector: ({ name }) => name, minLength: 1 }),
      async (seen) => {
        minute += 60;
        const minutes: TelemetryMinute[] = seen.map(({ name, rx, tx, observedMs }) =>
          capture(name, name === 'eth0' ? 'uplink' : 'bridge', rx, tx, { minute, observedMs }),
        );
        await world.apply(createSpool().upload(minutes));
        const [rx, tx, coverage] = (await readMinute(world, minute)) as [number, number, number | null];
        const most = Math.max(...seen.map((one) => one.rx + one.tx));
        assert.equal(rx + tx, most);
        const longest = Math.max(
          ...seen.filter((one) => one.rx + one.tx === most).map((one) => one.observedMs),
        );
        assert.ok(seen.some((one) => one.rx === rx && one.tx === tx && one.observedMs === longest));
        const holdsBoth = seen.every((one) => one.rx <= rx && one.tx <= tx);
        assert.equal(coverage, holdsBoth ? longest / 60_000 : null);
      },
    ),
    { numRuns: 25 },
  );
});

test('zero or gap depends on the captures that saw the address last, not on older ones', () => {
  const at = (offset: number) => offset * 60;
  const minutes = joinMinutes({
    fromMinute: at(0),
    toMinute: at(4),
    knownCaptures: [1],
    sightings: [
      {
        minute: at(1),
        captureId: 2,
        rxBytes: 9,
        txBytes: 9,
        packets: 1,
        observedMs: 60_000,
        coverage: 1,
      },
    ],
    capturesSeen: new Map([[at(1), [2]]]),
    listening: [0, 2, 3].map((offset) => ({
      captureId: offset === 3 ? 2 : 1,
      minute: at(offset),
      observedMs: 60_000,
      coverage: 1,
    })),
    gaps: [],
    delivered: new Map(),
  });
  assert.deepEqual(
    minutes.map((entry) => (entry.isGap ? 'gap' : entry.rxBytes)),
    [0, 9, 'gap', 0],
  );
});

test('NET-2.4.3: a gap after what a listening capture has delivered is not finished; a recorded gap, and other captures, say otherwise', () => {
  const at = (offset: number) => offset * 60;
  const read = (delivered: [number, number][], gaps: { captureId: number; offset: number }[] = []) =>
    joinMinutes({
      ...{ fromMinute: at(0), toMinute: at(4), knownCaptures: [1], sightings: [], capturesSeen: new Map() },
      listening: [{ captureId: 1, minute: at(0), observedMs: 60_000, coverage: 1 }],
      gaps: gaps.map(({ captureId, offset }) => ({
        ...{ captureId, fromMinute: at(offset), toMinute: at(offset), reason: 'sensor_down' as const },
      })),
      delivered: new Map(delivered),
    }).map(({ loss }) => loss);
  const awaited = 'not_finished';
  assert.deepEqual(read([[1, at(1)]]), [null, null, awaited, awaited], 'minute 1 was delivered without it');
  assert.deepEqual(read([[1, at(1)]], [{ captureId: 1, offset: 2 }]), [null, null, 'sensor_down', awaited]);
  assert.deepEqual(read([[2, at(1)]]), [null, null, null, null], 'of another capture');
  assert.deepEqual(read([]), [null, null, null, null], 'silent for long');
});
