import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { type DetectorMinute, type DetectorRow, metrics } from '#contracts/sensor-api/detection.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  type MonitorWorld,
  testMinute,
} from '#monitor/testing/index.ts';

let world: MonitorWorld;
before(async () => {
  world = await createMonitorWorld();
});
after(() => world[Symbol.asyncDispose]());

const address = '192.0.2.10';
const values = (first: number) => metrics.map((_, i) => first + i);

function row(more: Partial<DetectorRow> = {}): DetectorRow {
  return {
    ...{ address, direction: 'inbound', attackBytes: 0, attackPackets: 0 },
    ...{ oneSecond: values(10), tenSeconds: values(5) },
    ...more,
  };
}

function report(more: Partial<DetectorMinute> = {}): DetectorMinute {
  return {
    ...{ ticks: 60, epochId: '', overflowed: 0, incidentsLost: 0, mergedFrames: 0 },
    rows: [row()],
    ...more,
  };
}

const minuteOf = (offset: number, detector: DetectorMinute) => ({
  ...captureMinute({ minute: testMinute + offset * 60 }),
  detector,
});
const readMinutes = () =>
  world.rows<object>(
    'select ticks, epoch_id, overflowed::int, incidents_lost, merged_frames::int, lost_packets::int from detector_minutes order by minute',
  );
const maxima = (of = address) =>
  world.detection.listMaxima(world.siteId, of, testMinute * 1000, (testMinute + 3600) * 1000);

test('NET-2.4.5: a report is stored with its upload, once, and parts of a minute add', async () => {
  const epochId = randomUUID();
  const spool = createSpool();
  const first = spool.upload([minuteOf(0, report({ ticks: 30, epochId, rows: [row({ attackBytes: 7 })] }))]);
  await world.apply(first);
  await world.apply(first);
  assert.deepEqual(await readMinutes(), [
    { ticks: 30, epoch_id: epochId, overflowed: 0, incidents_lost: 0, merged_frames: 0, lost_packets: 0 },
  ]);
  const more = row({ oneSecond: values(1).with(0, 99), attackBytes: 3, attackPackets: 2 });
  await world.apply(
    spool.upload([minuteOf(0, report({ ticks: 29, epochId: randomUUID(), overflowed: 4, rows: [more] }))]),
  );
  assert.deepEqual(await readMinutes(), [
    { ticks: 59, epoch_id: null, overflowed: 4, incidents_lost: 0, merged_frames: 0, lost_packets: 0 },
  ]);
  const [held] = await maxima();
  assert.equal(held!.oneSecond[0], 99);
  assert.deepEqual(held!.oneSecond.slice(1), values(10).slice(1));
  const [amounts] = await world.rows<{ bytes: number; packets: number }>(
    'select attack_bytes::int as bytes, attack_packets::int as packets from detector_addresses',
  );
  assert.deepEqual(amounts, { bytes: 10, packets: 2 });
});

test('the reader gives the largest rates of one address in time order, by capture and direction', async () => {
  await world.apply(
    createSpool().upload([
      minuteOf(3, report({ rows: [row({ direction: 'outbound', oneSecond: values(40) }), row()] })),
      minuteOf(2, report({ rows: [row({ address: '192.0.2.99' })] })),
    ]),
  );
  const rows = (await maxima()).filter(({ minute }) => minute > testMinute);
  assert.deepEqual(
    rows.map(({ minute, capture, isOutbound, oneSecond, tenSeconds }) => [
      (minute - testMinute) / 60,
      capture,
      isOutbound,
      oneSecond,
      tenSeconds,
    ]),
    [
      [3, 'eth0', false, values(10), values(5)],
      [3, 'eth0', true, values(40), values(5)],
    ],
  );
  assert.equal((await maxima('192.0.2.99')).length, 1);
});

test('NET-2.4.5: an epoch is stored once, and is kept as long as minutes name it', async () => {
  const id = randomUUID();
  const epoch = { id, sinceMs: testMinute * 1000, prefixes: ['192.0.2.0/24', '2001:db8::1'] };
  const spool = createSpool();
  await world.apply({ ...spool.upload([minuteOf(4, report({ epochId: id }))]), epochs: [epoch] });
  await world.apply({ ...spool.upload([minuteOf(5, report({ epochId: id }))]), epochs: [epoch] });
  const earlier = { ...epoch, id: randomUUID() };
  await world.apply({ ...spool.upload([minuteOf(5, report({ epochId: earlier.id }))]), epochs: [earlier] });
  const [stored] = await world.rows<{ prefixes: string; since: Date }>(
    'select prefixes::text, since from detector_epochs where id = $1',
    [id],
  );
  assert.equal(stored!.prefixes, '{192.0.2.0/24,2001:db8::1}');
  assert.equal(stored!.since.getTime(), testMinute * 1000);
  await world.database.pool.query("update detector_epochs set last_used_at = svc_now() - interval '80 days'");
  await world.apply(spool.upload([minuteOf(6, report({ epochId: id }))]));
  const used = await world.rows<{ id: string }>(
    "select id from detector_epochs where last_used_at > svc_now() - interval '1 day'",
  );
  assert.deepEqual(used, [{ id }], 'no other is kept for it');
});

test('an upload without a detector stores no report: such a minute is unknown', async () => {
  const before = (await readMinutes()).length;
  await world.apply(createSpool().upload([captureMinute({ minute: testMinute + 600 })]));
  assert.equal((await readMinutes()).length, before);
});
