import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { decodeUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { packetsAtThreshold, startSecond } from '#sensor/testing/attack-traffic.ts';
import { createDetectingSensor, detectionPlan } from '#sensor/testing/detecting-sensor.ts';
import {
  background,
  detected,
  divided,
  flood,
  plan,
  requireTimely,
  seconds,
  thresholds,
} from '#sensor/testing/live-attacks.ts';
import { createOrdinary } from '#sensor/testing/ordinary-traffic.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';

async function sensor(
  t: TestContext,
  options: Parameters<typeof createDetectingSensor>[1] = {},
  folder = '',
) {
  const one = await createDetectingSensor(folder || temporaryFolder(t), options);
  return one;
}

for (const members of [1, 3])
  test(`NET-1.1: live with ${members} threads, an attack is decided within 3 s at 2 times a threshold and 6 s at 1.1 times`, async (t) => {
    await requireTimely(t, members, 1.1, [0.93]);
    await requireTimely(t, members, 2, [0.13]);
  });

test('NET-1.1: half of a flood at each of two threads is one attack with its whole rate', async (t) => {
  const one = await sensor(t, { members: 2 });
  one.follow(plan);
  await one.play([flood({ ratio: 1 }, 3, 12), flood({ ratio: 1 }, 3.005, 12)], 9);
  const [attack, ...others] = detected(one);
  assert.equal(others.length, 0);
  const pps = packetsAtThreshold({ class: 'syn_flood', version: 4, direction: 'inbound', ratio: 1 }, divided);
  assert.ok(Math.abs(attack!.peak.pps - pps * 2) <= 2, `${attack!.peak.pps}`);
  assert.deepEqual(attack!.threshold, { metric: 'syn_pps', value: pps });
  const { trigger, ratios, all } = attack!.reason!;
  assert.equal(trigger, 'two_of_three');
  assert.ok(Math.abs(Math.max(...ratios) - 2) < 0.1, ratios.join(' '));
  assert.ok(Math.abs(all.packets - pps * 2) <= 2, `${all.packets}`);
  await one.stop();
});

test('NET-1.1: live, ordinary traffic over a threshold is no attack, its first seconds included; a flood beside it is', async (t) => {
  const one = await sensor(t);
  one.follow(plan);
  const tunnel = createOrdinary('VXLAN between two servers', { version: 4, thresholds: divided, seed: 1 });
  const hub = createOrdinary('WireGuard hub', { version: 4, thresholds: divided, seed: 2 });
  await one.play(
    [
      { step: tunnel.step, perSecond: tunnel.perSecond * 6, from: 3.2, to: 30 },
      { step: hub.step, perSecond: hub.perSecond * 6, from: 4.6, to: 30 },
    ],
    15,
  );
  assert.deepEqual(detected(one), []);
  await one.play(
    [
      flood({ class: 'udp_flood' }, 16.4, 30),
      { step: hub.step, perSecond: hub.perSecond * 6, from: 15, to: 30 },
    ],
    21,
  );
  const [flooded, ...others] = detected(one);
  assert.deepEqual([flooded!.class, others], ['udp_flood', []]);
  const { pairs, ordinary } = flooded!.reason!;
  assert.deepEqual(pairs, { established: 10, others: 0 });
  assert.deepEqual(
    ordinary.map(({ rule }) => rule),
    ['pairs'],
  );
  await one.stop();
});

test('NET-3.2: only sixty observed healthy seconds end an incident; its heartbeats carry every second once', async (t) => {
  const one = await sensor(t);
  one.follow(plan);
  await one.play([background(200), flood({}, 3.5, 30)], 93);
  const told = one.incidents();
  assert.deepEqual(
    told.map(({ revision }) => revision),
    told.map((_, i) => i + 1),
  );
  assert.equal(new Set(told.map(({ id }) => id)).size, 1);
  const last = told.at(-1)!;
  assert.deepEqual([last.state, last.current], ['recovered', null]);
  assert.ok(told.slice(0, -1).every(({ state }) => state === 'active'));
  // The flood ends within its last second, and sixty follow.
  assert.equal(seconds(last.recoveredAtMs!), 90);
  const all = told.flatMap((observation) => observation.seconds.map(({ atMs }) => seconds(atMs)));
  assert.deepEqual(
    all,
    Array.from({ length: 87 }, (_, i) => i + 3),
  );
  const gaps = told.slice(1, -1).map(({ seconds: some }) => some.length);
  assert.ok(
    gaps.every((count) => count >= 9 && count <= 11),
    gaps.join(' '),
  );
  assert.deepEqual(one.detection.active(), []);
  await one.stop();
});

test('NET-3.2: no seconds are no recovery: threads that stand still, late seconds, lost packets and a stopped sensor', async (t) => {
  const folder = temporaryFolder(t);
  const one = await sensor(t, {}, folder);
  one.follow(plan);
  await one.play([background(400), flood({}, 3.5, 20)], 40);
  await one.stall(70);
  await one.play([], 115);
  assert.equal(one.incidents().at(-1)!.state, 'active');
  // 2 % of the packets are lost in every second: none of them is healthy.
  for (let second = 116; second < 190; second += 1) {
    one.drop(50);
    await one.play([{ ...background(0), from: second - 1, to: second, perSecond: 20 }], second);
  }
  const told = one.incidents();
  assert.ok(told.every(({ state }) => state === 'active'));
  assert.equal(told.at(-1)!.coverage, 'partial');
  const { id } = told[0]!;
  await one.stop();
  const again = await sensor(t, { from: 200, uptimeFrom: 200_000 }, folder);
  again.follow(plan);
  await again.play([], 240);
  const after = again.incidents();
  assert.ok(after.length > 0 && after.every((observation) => observation.id === id));
  assert.equal(after[0]!.revision, told.at(-1)!.revision + 1);
  assert.equal(after[0]!.coverage, 'unknown');
  assert.ok(after.every(({ state }) => state === 'active'));
  // The first second of a thread is not whole; sixty follow.
  await again.play([], 265);
  assert.equal(again.incidents().at(-1)!.state, 'recovered');
  await again.stop();
});

test('NET-3.2: an incident that was active goes on under its id when the sensor starts again during the attack', async (t) => {
  const folder = temporaryFolder(t);
  const one = await sensor(t, {}, folder);
  one.follow(plan);
  await one.play([flood({ class: 'protocol_flood' }, 3.5, 100)], 20);
  const before = one.incidents();
  one.spool.close();
  // As an older sensor stored it.
  const file = join(folder, 'incidents.json');
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('protocol_flood', 'gre_flood'));
  const again = await sensor(t, { from: 22, uptimeFrom: 22_000 }, folder);
  again.follow(plan);
  await again.play([flood({ class: 'protocol_flood' }, 22, 100)], 40);
  const after = again.incidents();
  assert.deepEqual([...new Set([...before, ...after].map(({ id }) => id))].length, 1);
  const [{ class: name, vectors }] = after.slice(-1) as [(typeof after)[number]];
  assert.deepEqual([name, vectors[0]!.details!.protocols], ['protocol_flood', [132]]);
  assert.ok(after.at(-1)!.revision > before.at(-1)!.revision);
  assert.equal(after.at(-1)!.startedAtMs, before[0]!.startedAtMs);
  assert.ok(after.at(-1)!.current!.pps > 0);
  await again.stop();
});

test('a second that is judged late begins no incident; neither do seconds around a clock step', async (t) => {
  const late = await sensor(t);
  late.follow(plan);
  await late.play([background(3)], 3);
  // Frames of four seconds of flood arrive after the threads stood still.
  await late.stall(8);
  await late.play([flood({}, 3.1, 7)], 11.5);
  assert.deepEqual(late.incidents(), []);
  await late.stop();
  const step = await sensor(t);
  step.follow(plan);
  await step.play([flood({}, 3.5, 30)], 10);
  const [first] = step.incidents();
  step.clock.stepWall(3_600_000);
  await step.play([flood({}, 3610, 3620)], 3625);
  const told = step.incidents();
  assert.ok(told.length > 0 && told.every(({ id }) => id === first!.id));
  assert.equal(told.at(-1)!.startedAtMs, first!.startedAtMs + 3_600_000);
  await step.stop();
});

test('NET-2.4.5: a whole minute in one epoch has sixty ticks; its attack amounts are those of its incident', async (t) => {
  const one = await sensor(t, { from: 40 - (startSecond % 60) });
  one.follow(plan);
  const start = 40 - (startSecond % 60) + 20;
  await one.play(
    [{ ...background(300), from: start - 20, to: 300 }, flood({}, start + 70, start + 80)],
    start + 190,
  );
  const told = one.minutes.map(({ detector }) => detector!);
  const [partial, quiet, attacked, healthy] = told;
  assert.ok(partial!.ticks < 60);
  assert.equal(partial!.epochId, quiet!.epochId, 'the epoch began before the first whole second');
  for (const minute of [quiet!, attacked!, healthy!]) {
    assert.equal(minute.ticks, 60);
    assert.equal(minute.epochId, one.detection.epochs.ready()![0]!.id);
    assert.deepEqual([minute.overflowed, minute.incidentsLost], [0, 0]);
  }
  const row = (minute: typeof quiet) =>
    minute!.rows.find(({ address, direction }) => address === '192.0.2.7' && direction === 'inbound')!;
  assert.equal(row(quiet).attackPackets, 0);
  const [incident] = one.incidents().slice(-1);
  assert.equal(row(attacked).attackPackets, incident!.totals.packets);
  assert.equal(row(attacked).attackBytes, incident!.totals.bytes);
  assert.equal(row(attacked).oneSecond[2], 100, 'the largest second of openings');
  assert.equal(row(attacked).tenSeconds[2], 100);
  assert.equal(row(healthy).attackPackets, 0);
  const upload = { spoolId: randomUUID(), sequence: 1, sensorVersion: '0', minutes: one.minutes, gaps: [] };
  const sent = decodeUpload(encodeUpload({ ...upload, epochs: one.detection.epochs.ready()! }));
  assert.deepEqual(sent.epochs, one.detection.epochs.ready());
  assert.equal(sent.minutes[2]!.detector!.rows.length, attacked!.rows.length);
  await one.stop();
});

test('NET-2.4.5: a minute that lost packets, changed its epoch, or may still turn out to be attacked is not complete', async (t) => {
  const start = 120 - (startSecond % 60);
  const one = await sensor(t, { from: start - 5 });
  one.follow(plan);
  await one.play([{ ...background(0), from: start - 5, to: start + 30 }], start + 30);
  one.drop(100);
  await one.play([{ ...background(0), from: start + 30, to: start + 90 }], start + 90);
  const [epoch] = one.detection.epochs.ready()!;
  one.follow(detectionPlan({ ...thresholds, inbound: { ...thresholds.inbound, pps: 100 } }));
  // The attack begins in the last second of the third minute and is decided in the fourth.
  await one.play(
    [{ ...background(0), from: start + 90, to: start + 250 }, flood({ ratio: 8 }, start + 179, start + 190)],
    start + 250,
  );
  const [, lossy, changed, pending, attacked] = one.minutes.map(({ detector }) => detector!);
  assert.ok(lossy!.ticks < 60);
  assert.deepEqual([lossy!.epochId, changed!.epochId], [epoch!.id, '']);
  const epochs = one.detection.epochs.ready()!;
  assert.equal(epochs.length, 2);
  assert.equal(pending!.epochId, epochs[1]!.id);
  assert.ok(pending!.ticks < 60, 'its last second was not decided in it');
  assert.ok(attacked!.rows.some(({ attackPackets }) => attackPackets > 0));
  await one.stop();
});

test('NET-9.2: a monitor without a detection version gets no incident, no detector minute and no epoch', async (t) => {
  const one = await sensor(t);
  one.follow(detectionPlan(null));
  await one.play([flood({ ratio: 10 }, 3, 70)], 75);
  assert.deepEqual(one.incidents(), []);
  assert.ok(one.minutes.length > 0 && one.minutes.every(({ detector }) => detector === undefined));
  assert.deepEqual(one.detection.epochs.ready(), []);
  await one.stop();
});

test('a drill goes the whole way, marked, and counts in no minute', async (t) => {
  const one = await sensor(t);
  const drill = {
    ...{ id: 'd', target: '192.0.2.7', direction: 'inbound', class: 'udp_flood', pps: 1000, bps: 5e6 },
    ...{ started_at: new Date((startSecond + 5) * 1000).toISOString(), seconds: 10 },
  };
  one.follow(detectionPlan({ ...thresholds, drills: [drill] }));
  await one.play([background(200)], 140);
  const told = one.incidents();
  assert.ok(told.length > 2 && told.every((observation) => observation.drill));
  assert.deepEqual([told[0]!.class, told[0]!.target.value], ['udp_flood', '192.0.2.7']);
  assert.equal(told.at(-1)!.state, 'recovered');
  assert.ok(
    one.minutes.every(({ detector }) => detector!.rows.every(({ attackPackets }) => attackPackets === 0)),
  );
  await one.stop();
});

test('an incident whose address is not protected any more gets a last revision of unknown coverage', async (t) => {
  const one = await sensor(t);
  one.follow(plan);
  await one.play([flood({}, 3.5, 60)], 10);
  one.follow(detectionPlan(thresholds, { protected_targets: ['2001:db8:7::7'] }));
  await one.play([], 40);
  const last = one.incidents().at(-1)!;
  assert.deepEqual([last.state, last.coverage, last.recoveredAtMs], ['active', 'unknown', null]);
  assert.deepEqual(one.detection.active(), []);
  await one.play([], 60);
  assert.deepEqual(one.incidents(), []);
  await one.stop();
});

test('addresses of a group have its thresholds, by the longest prefix', async (t) => {
  const one = await sensor(t);
  const group = (prefix: string, syn: number) => ({
    ...{ prefixes: [prefix], inbound: { ...thresholds.inbound, syn_pps: syn } },
    outbound: thresholds.outbound,
  });
  one.follow(detectionPlan({ ...thresholds, groups: [group('192.0.2.0/24', 10), group('192.0.2.7', 5000)] }));
  await one.play([flood({ ratio: 4 }, 3, 20)], 20);
  assert.deepEqual(detected(one), []);
  one.follow(detectionPlan({ ...thresholds, groups: [group('192.0.2.0/24', 10)] }));
  await one.play([flood({ ratio: 0.5 }, 20, 40)], 40);
  assert.deepEqual(detected(one)[0]!.threshold, { metric: 'syn_pps', value: 10 });
  await one.stop();
});
