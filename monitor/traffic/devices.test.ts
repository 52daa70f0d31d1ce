import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
  usageRow,
} from '#monitor/testing/index.ts';

let monitor: MonitorWorld;
before(async () => {
  monitor = await createMonitorWorld();
});
after(() => monitor[Symbol.asyncDispose]());

const one = 'br0|02:00:00:00:00:01';
const two = 'br0|02:00:00:00:00:02';
const fromMs = testMinute * 1000;
const toMs = fromMs + 120_000;

test('NET-2.2.10: WAN counts each address at its strongest capture, then adds a device’s addresses; LAN is the bridges’', async () => {
  const world = await monitor.atNewSite();
  const internal = usageRow({
    direction: 'internal',
    client: '192.0.2.10',
    server: '192.0.2.20',
    clientBytes: 7,
    serverBytes: 70,
  });
  await world.apply(
    createSpool().upload([
      captureMinute({
        hosts: [
          host('192.0.2.10', 100, 10, one),
          host('192.0.2.11', 5, 5, one),
          host('192.0.2.20', 1, 2, two),
        ],
        usage: [{ ...internal, clientBytes: 900 }],
      }),
      captureMinute({
        capture: 'br0',
        role: 'bridge',
        hosts: [
          host('192.0.2.10', 100, 9, one),
          host('192.0.2.11', 5, 6, one),
          host('192.0.2.20', 1, 2, two),
        ],
        usage: [internal],
      }),
    ]),
  );
  const expected = [
    { deviceKey: two, wan: { rxBytes: 1, txBytes: 2 }, lan: { rxBytes: 7, txBytes: 70 } },
    { deviceKey: one, wan: { rxBytes: 105, txBytes: 16 }, lan: { rxBytes: 70, txBytes: 7 } },
    { deviceKey: 'br0|02:00:00:00:00:99', wan: null, lan: null },
  ];
  const keys = expected.map((device) => device.deviceKey);
  const read = () => world.traffic.sumDevices(world.siteId, keys, fromMs, toMs);
  assert.deepEqual(await read(), { items: expected, sourceLimited: false });
  await world.facts.rollUp('all');
  assert.deepEqual(await read(), { items: expected, sourceLimited: false }, 'rolled up');
  const { items } = await world.traffic.readDevice(world.siteId, one, fromMs, toMs, 60);
  assert.deepEqual(items, [{ timeMs: fromMs, wan: expected[1]!.wan, lan: expected[1]!.lan }]);
});

test('NET-2.2.9: traffic of an unknown or contested owner counts for no device, and without owned counters WAN is unavailable', async () => {
  const world = await monitor.atNewSite();
  const minute = (key: string) => captureMinute({ hosts: [host('192.0.2.10', 50, 5, key)] });
  const spool = createSpool();
  const wan = async () => (await world.traffic.sumDevices(world.siteId, [one], fromMs, toMs)).items[0]!.wan;
  await world.apply(spool.upload([minute('')]));
  assert.equal(await wan(), null);
  await world.apply(spool.upload([{ ...minute(one), minute: testMinute + 60 }]));
  assert.deepEqual(await wan(), { rxBytes: 50, txBytes: 5 });
  await world.apply(spool.upload([{ ...minute(two), minute: testMinute + 60 }]));
  assert.equal(await wan(), null);
});

test('NET-2.2.9, NET-2.2.10: the owner of an uplink’s bytes comes from the bridge; there is none when bridges disagree', async () => {
  const world = await monitor.atNewSite();
  const minute = (capture: string, rxBytes: number, key: string, offset = 0) =>
    captureMinute({
      capture,
      role: capture === 'eth0' ? 'uplink' : 'bridge',
      minute: testMinute + offset,
      hosts: [host('192.0.2.10', rxBytes, 5, key)],
    });
  const spool = createSpool();
  const totals = async () =>
    (await world.traffic.sumDevices(world.siteId, [one, two], fromMs, toMs)).items.map(
      ({ wan }) => wan?.rxBytes,
    );
  await world.apply(spool.upload([minute('eth0', 100, ''), minute('br0', 98, one)]));
  assert.deepEqual(await totals(), [100, undefined]);
  await world.apply(
    spool.upload([minute('eth0', 7, '', 60), minute('br0', 6, one, 60), minute('br1', 5, two, 60)]),
  );
  assert.deepEqual(await totals(), [100, undefined]);
  // A part of the bridge's minute without a known owner.
  await world.apply(spool.upload([minute('br0', 1, '')]));
  assert.deepEqual(await totals(), [undefined, undefined]);
});

test('NET-2.2.10: a result that exceeds the limit of a read is marked as limited', async () => {
  const world = await monitor.atNewSite();
  const addresses = (count: number) =>
    Array.from({ length: count }, (_, i) => host(`10.9.${i >> 8}.${i & 255}`, 1, 0, one));
  const spool = createSpool();
  const read = () => world.traffic.sumDevices(world.siteId, [one], fromMs, toMs);
  await world.apply(spool.upload([captureMinute({ hosts: addresses(4096) })]));
  assert.deepEqual(await read(), {
    items: [{ deviceKey: one, wan: { rxBytes: 4096, txBytes: 0 }, lan: { rxBytes: 0, txBytes: 0 } }],
    sourceLimited: false,
  });
  await world.apply(spool.upload([captureMinute({ minute: testMinute + 60, hosts: addresses(4097) })]));
  const { sourceLimited } = await read();
  assert.equal(sourceLimited, true);
});

test('a number has its source: every capture, the chosen one, and the reason', async () => {
  const world = await monitor.atNewSite();
  await world.apply(
    createSpool().upload([
      captureMinute({ hosts: [host('192.0.2.10', 100, 9, one)], totals: { kernelDropped: 4 } }),
      captureMinute({ capture: 'br0', role: 'bridge', hosts: [host('192.0.2.10', 100, 10, one)] }),
    ]),
  );
  const rows = await world.traffic.explainAddress(world.siteId, '192.0.2.10', testMinute, testMinute + 60);
  assert.deepEqual(
    rows.map((row) => [row.hostName, row.capture, row.role, row.txBytes, row.kernelDropped, row.reason]),
    [
      ['node-1', 'br0', 'bridge', 10, 0, 'most_bytes'],
      ['node-1', 'eth0', 'uplink', 9, 4, null],
    ],
  );
});
