/**
 * Which files a counter of a capture minute touches: `docs/adding-a-record.md` lists them, and each message below names
 * the one that is missing.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import type { TelemetryTotals } from '#contracts/sensor-api/telemetry.ts';
import { InterfaceTotalsSchema } from '#contracts/sensor-api/telemetry_pb.js';
import { arePlausible, decodeTotals, encodeTotals } from '#contracts/sensor-api/telemetry-totals.ts';
import { captureMinute, createMonitorWorld, createSpool } from '#monitor/testing/index.ts';
import { emptyTotals } from '#sensor/capture/capture.ts';

const counters = InterfaceTotalsSchema.fields.map(({ name, localName }) => ({
  column: name,
  name: localName as keyof TelemetryTotals,
}));

/** Each counter has a value of its own. `packets` is the sum that the wire demands. */
function distinctTotals(): TelemetryTotals {
  const totals: TelemetryTotals = emptyTotals();
  for (const [i, { name }] of counters.entries()) totals[name] = 1000 + 10 ** Math.min(i, 2) + i;
  totals.packets = totals.ipPackets + totals.nonIpPackets + totals.parserDropped;
  return totals;
}

test('a counter of telemetry.proto is counted by the sensor, goes over the wire by itself, and has a column in the facts', async () => {
  const counted = new Set(Object.keys(emptyTotals()));
  assert.deepEqual(
    counters.filter(({ name }) => !counted.has(name)),
    [],
    'missing in sensor/capture/capture.ts',
  );
  assert.equal(counted.size, counters.length, 'missing in telemetry.proto: InterfaceTotals');
  const totals = distinctTotals();
  assert.deepEqual(decodeTotals(encodeTotals(totals)), totals);
  await using world = await createMonitorWorld();
  for (let i = 0; i < 2; i += 1) await world.apply(createSpool().upload([captureMinute({ totals })]));
  const [row] = await world.rows<{ row: Record<string, number> }>(
    'select to_jsonb(capture_minutes) as row from capture_minutes',
  );
  assert.deepEqual(
    counters.map(({ column }) => [column, row!.row[column]]),
    counters.map(({ column, name }) => [column, 2 * totals[name]!]),
    'missing in a migration of capture_minutes or in monitor/facts/postgres/append-store.ts',
  );
});

test('a counter that is absent on the wire is absent in the totals, and one that a double can not hold is not plausible', () => {
  const losses = { nonIpPackets: 0, parserDropped: 0, kernelDropped: 0, detailTruncated: 0 };
  const first = { packets: 1, ipPackets: 1, ipBytes: 40, ...losses };
  assert.deepEqual(decodeTotals(encodeTotals(first)), first);
  assert.ok(arePlausible(encodeTotals(first)));
  for (const { name } of counters) {
    const wire = create(InterfaceTotalsSchema, { ...encodeTotals(first), [name]: 2n ** 60n });
    assert.equal(arePlausible(wire), false, name);
  }
});
