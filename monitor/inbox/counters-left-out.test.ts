import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  testMinute,
  usageRow,
} from '#monitor/testing/index.ts';

test('NET-2.4.2: an upload with absurd counters loses those alone; their address is unknown, never zero', async () => {
  await using world = await createMonitorWorld();
  const spool = createSpool();
  const next = testMinute + 60;
  const addresses = ['192.0.2.10', '192.0.2.11', '192.0.2.12', '192.0.2.13'];
  await world.apply(spool.upload([captureMinute({ hosts: addresses.map((one) => host(one, 5, 6)) })]));
  const absurd = [
    { ...host('192.0.2.11', 2 ** 51, 0), packets: 2 ** 40 },
    { ...host('192.0.2.12', 2 ** 60, 0), packets: 1 },
    { ...host('192.0.2.13', 65_576, 0), packets: 1 },
  ];
  const upload = spool.upload([
    captureMinute({
      minute: next,
      hosts: [host('192.0.2.10', 7, 8), ...absurd],
      usage: [usageRow(), usageRow({ name: 'example.org', clientBytes: 2 ** 60 })],
    }),
    captureMinute({ minute: next, capture: 'eth1', totals: { ipBytes: 2 ** 53, ipPackets: 1 } }),
  ]);
  const receipt = await world.inbox.receive(world.sensor, compressUpload(encodeUpload(upload)), 'zstd');
  assert.deepEqual([receipt.receipt, receipt.set_aside], ['accepted', 5]);
  await world.inbox.drain();
  const read = async (address: string) =>
    (await world.traffic.readAddressMinutes(world.siteId, address, next, next + 60))[0]!;
  const { captureId: _, ...told } = (await read('192.0.2.10')) as { captureId: number };
  assert.deepEqual(told, {
    isGap: false,
    minute: next,
    rxBytes: 7,
    txBytes: 8,
    packets: 10,
    coverage: 1,
    loss: null,
  });
  for (const address of addresses.slice(1))
    assert.deepEqual(await read(address), { isGap: true, minute: next, loss: 'rejected' });
  assert.deepEqual(
    await world.rows(
      'select packets, detail_truncated as truncated from capture_minutes where minute = to_timestamp($1)',
      [next],
    ),
    [{ packets: 100, truncated: 1 }],
  );
  assert.deepEqual(
    await world.rows('select name from application_facts where minute = to_timestamp($1)', [next]),
    [{ name: 'example.net' }],
  );
  const gaps = await world.traffic.listGaps(world.siteId, testMinute * 1000, (next + 60) * 1000, 10);
  assert.deepEqual(
    gaps.map(({ capture, fromMinute, reason }) => [capture, fromMinute, reason]),
    [['eth1', next, 'refused']],
  );
  const { length } = await world.rows('select 1 from set_aside_hosts');
  assert.equal(length, 3);
});

test('a minute with merged frames of unknown size may hold more bytes than its packets do', async () => {
  await using world = await createMonitorWorld();
  const merged = { ...host('192.0.2.10', 524_328, 0), packets: 1 };
  const upload = createSpool().upload([captureMinute({ hosts: [merged], totals: { mergedFrames: 1 } })]);
  const receipt = await world.inbox.receive(world.sensor, compressUpload(encodeUpload(upload)), 'zstd');
  assert.equal(receipt.set_aside, undefined);
});
