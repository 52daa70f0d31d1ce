import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { metrics } from '#contracts/sensor-api/detection.ts';
import { type Actor, systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { ThresholdTexts } from './index.ts';

const ada: Actor = { kind: 'person', id: 1, role: 'operator', name: 'ada@example.com' };
const address = '198.51.100.5';
let nowMs: number;
const inbound = (texts: ThresholdTexts['inbound']): ThresholdTexts => ({ inbound: texts, outbound: {} });

let world: MonitorWorld;
before(async () => {
  nowMs = Math.floor(Date.now() / 60_000) * 60_000;
  world = await createMonitorWorld();
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await world.rows(
    `select ensure_fact_partition('detector_addresses', day, interval '1 day')
     from generate_series(date_trunc('day', now() - interval '4 days'), now() + interval '1 day', interval '1 day') day`,
  );
});
after(() => world[Symbol.asyncDispose]());

interface Seeded {
  sensorId?: number;
  capture?: string;
  of?: string;
  isOutbound?: boolean;
  one: Partial<Record<(typeof metrics)[number], number>>;
  ten: Partial<Record<(typeof metrics)[number], number>>;
}

/** A stored minute, so many minutes ago. */
async function store(ago: number, { one, ten, ...of }: Seeded): Promise<void> {
  const list = (rates: Seeded['one']) => metrics.map((metric) => rates[metric] ?? 0);
  await world.rows(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
     values (to_timestamp($1::float8), $2, $3, $4, $5, $6, $7, $8, 0, 0)`,
    [
      nowMs / 1000 - ago * 60,
      world.siteId,
      of.sensorId ?? world.sensor.id,
      of.capture ?? 'uplink0',
      of.of ?? address,
      of.isOutbound ?? false,
      list(one),
      list(ten),
    ],
  );
}
const ask = (texts: ThresholdTexts) => world.protection.askWhatIf(world.siteId, address, texts, nowMs);

test('what-if says how often other thresholds would have fired, when and by what, beside the present ones, and changes nothing', async () => {
  await store(3000, { one: { pps: 45_000 }, ten: { pps: 40_000 } });
  await store(3000, { one: { pps: 44_000 }, ten: { pps: 39_000 }, capture: 'br0' });
  await store(2000, { one: { syn_pps: 60_000, pps: 60_000 }, ten: { syn_pps: 50_000, pps: 50_000 } });
  await store(1999, { one: { syn_pps: 90_000, pps: 90_000 }, ten: { syn_pps: 80_000, pps: 80_000 } });
  await store(1000, { one: { pps: 30_000 }, ten: { pps: 3000 } });
  await store(500, { one: { pps: 5000 }, ten: { pps: 4000 } });
  await store(400, { one: { pps: 90_000 }, ten: { pps: 80_000 }, of: '198.51.100.6' });
  const shortly = (list: Awaited<ReturnType<typeof ask>>['findings']) =>
    list.map((one) => [
      (nowMs - one.fromMs) / 60_000,
      (one.toMs - one.fromMs) / 60_000,
      one.isCertain ? 'certain' : 'possible',
      one.metric,
      one.ratio,
    ]);
  const answer = await ask(inbound({ pps: '15k' }));
  assert.equal(answer.minutes, 5);
  assert.deepEqual(shortly(answer.findings), [
    [3000, 1, 'certain', 'pps', 3],
    [2000, 2, 'certain', 'syn_pps', 9],
    [1000, 1, 'possible', 'pps', 2],
  ]);
  assert.deepEqual(shortly(answer.present), [[2000, 2, 'certain', 'syn_pps', 9]]);
  const off = await ask(inbound({ syn_pps: 'off', pps: 'off' }));
  assert.deepEqual(off.findings, []);
  await assert.rejects(ask(inbound({ pps: 'lots' })), { code: 'protection.invalid' });
  const { settings } = await world.protection.describeSite(world.siteId, []);
  assert.deepEqual([settings.site.revision, settings.servers], [0, []]);
});

test('what-if compares incidents one by one: one that is lost beside one that is kept is named with its peak, although both count as one', async () => {
  const of = '198.51.100.11';
  const flood = (ago: number, mbit: number) =>
    store(ago, { of, one: { udp_bps: mbit * 1e6 }, ten: { udp_bps: mbit * 1e6 } });
  await flood(900, 900);
  await flood(898, 228);
  // A kept attack fades: its last minute is a part of it.
  await flood(600, 900);
  await flood(599, 300);
  await flood(300, 150);
  await world.protection.setServerThresholds(
    ada,
    world.siteId,
    { address: of },
    inbound({ udp_bps: '200M' }),
    0,
  );
  const compare = async (texts: ThresholdTexts) => {
    const answer = await world.protection.askWhatIf(world.siteId, of, texts, nowMs);
    const rows = answer.compared.map((one) => [
      ...[one.outcome, (nowMs - one.fromMs) / 60_000, (nowMs - one.toMs) / 60_000, one.rate / 1e6],
      ...[one.ratio, one.presentRatio],
    ]);
    return { rows, counts: [answer.findings.length, answer.present.length] };
  };
  assert.deepEqual(await compare(inbound({ udp_bps: '400M' })), {
    rows: [
      ['kept', 900, 899, 900, 2.25, 4.5],
      ['lost', 898, 897, 228, 0.57, 1.14],
      ['kept', 600, 598, 900, 2.25, 4.5],
    ],
    counts: [2, 2],
  });
  assert.deepEqual(await compare(inbound({ udp_bps: '100M' })), {
    rows: [
      ['kept', 900, 897, 900, 9, 4.5],
      ['kept', 600, 598, 900, 9, 4.5],
      ['new', 300, 299, 150, 1.5, 0.75],
    ],
    counts: [3, 2],
  });
  const { rows } = await compare(inbound({ udp_bps: 'off' }));
  assert.deepEqual(
    rows.map(([outcome, , , , ratio]) => [outcome, ratio]),
    [
      ['lost', null],
      ['lost', null],
    ],
  );
});

test('what-if marks minutes from before the sensor counted by pairs of addresses', async () => {
  const of = '198.51.100.12';
  const loud = { of, one: { pps: 90_000 }, ten: { pps: 80_000 } };
  for (const ago of [800, 500]) await store(ago, loud);
  const ask = () => world.protection.askWhatIf(world.siteId, of, inbound({}), nowMs);
  const marks = async () => {
    const { compared, olderMinutes } = await ask();
    return [compared.map(({ isOlderRule }) => isOlderRule), olderMinutes];
  };
  assert.deepEqual(await marks(), [[true, true], 2]);
  const tell = (ago: number, countingRule?: number) =>
    world.rows(
      `insert into detector_epochs (sensor_id, id, since, prefixes, counting_rule)
       values ($1, gen_random_uuid(), to_timestamp($2::float8), '{198.51.100.0/24}', coalesce($3::int, 1))`,
      [world.sensor.id, nowMs / 1000 - ago * 60, countingRule],
    );
  await tell(900);
  assert.deepEqual(await marks(), [[true, true], 2]);
  // Of the minute in which it began a part was counted by flows.
  await tell(499.5, 2);
  assert.deepEqual(await marks(), [[true, true], 2]);
  await tell(700, 2);
  assert.deepEqual(await marks(), [[true, false], 1]);
  const learned = await world.protection.learn(world.siteId, of, nowMs);
  assert.deepEqual([learned.minutes, learned.olderMinutes], [2, 1]);
});

test('the first, partial minute of a sensor that never counted by flows is one of pairs of addresses', async () => {
  const of = '198.51.100.13';
  const fresh = await world.enrol('node-3');
  await store(300, { of, sensorId: fresh.id, one: { pps: 90_000 }, ten: { pps: 80_000 } });
  await world.rows(
    `insert into detector_epochs (sensor_id, id, since, prefixes, counting_rule)
     values ($1, gen_random_uuid(), to_timestamp($2::float8), '{198.51.100.0/24}', 2)`,
    [fresh.id, nowMs / 1000 - 299.5 * 60],
  );
  const answer = await world.protection.askWhatIf(world.siteId, of, inbound({}), nowMs);
  assert.deepEqual([answer.minutes, answer.olderMinutes], [1, 0]);
  assert.deepEqual(
    answer.compared.map(({ isOlderRule }) => isOlderRule),
    [false],
  );
});

test('a sensor that may not speak for the address is not replayed, and minutes before its server moved are', async () => {
  const other = await world.enrol('node-2');
  await world.rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at, ended_at) values
      (7, 9, 'node-2', '02:00:00:00:00:09', 'br0', '198.51.100.9', true, '-infinity', to_timestamp($1::float8)),
      (7, 9, 'node-1', '02:00:00:00:00:09', 'br0', '198.51.100.9', true, to_timestamp($1::float8), null)`,
    [nowMs / 1000 - 600 * 60],
  );
  const loud = { one: { pps: 90_000 }, ten: { pps: 80_000 }, of: '198.51.100.9' };
  await store(700, { ...loud, sensorId: other.id });
  await store(500, { ...loud, sensorId: other.id });
  await store(300, loud);
  const found = await world.protection.askWhatIf(
    world.siteId,
    '198.51.100.9',
    inbound({ pps: '10k' }),
    nowMs,
  );
  assert.deepEqual(
    found.findings.map((one) => (nowMs - one.fromMs) / 60_000),
    [700, 300],
  );
  assert.equal(found.minutes, 2);
});

test('learn needs a day of traffic, proposes from the 99.9th percentile, and applies only by a change that is audited', async () => {
  const few = await world.protection.learn(world.siteId, address, nowMs);
  assert.deepEqual([few.isEnough, few.proposals], [false, []]);
  await world.rows(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
     select to_timestamp($1::float8) - n * interval '1 minute', $2, $3, 'uplink0', '198.51.100.7', false,
       array[case when n <= 2 then 900000 else 4000 + n end, 3000000, 0, 0, 0, 0, 0, 0, 0, 0], array[1, 1, 0, 0, 0, 0, 0, 0, 0, 0], 0, 0
     from generate_series(1, 3000) n`,
    [nowMs / 1000, world.siteId, world.sensor.id],
  );
  const found = await world.protection.learn(world.siteId, '198.51.100.7', nowMs);
  assert.deepEqual([found.isEnough, found.minutes], [true, 3000]);
  const pps = found.proposals.find((one) => one.metric === 'pps' && one.direction === 'inbound')!;
  // Two of 3,000 minutes were an attack: they are the strongest thousandth.
  assert.deepEqual([pps.percentile, pps.now, pps.proposed], [6999, 50_000, 14_000]);
  const key = { address: '198.51.100.7' };
  await world.protection.setServerThresholds(ada, world.siteId, key, inbound({ pps: '14k' }), 0);
  const after = await world.protection.learn(world.siteId, '198.51.100.7', nowMs);
  assert.equal(
    after.proposals.some((one) => one.metric === 'pps' && one.direction === 'inbound'),
    false,
  );
});
