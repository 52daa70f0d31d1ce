import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { metrics } from '#contracts/sensor-api/detection.ts';
import { type Actor, systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { ThresholdTexts } from './index.ts';

const ada: Actor = { kind: 'person', id: 1, role: 'operator', name: 'ada@example.com' };
const eve: Actor = { kind: 'person', id: 2, role: 'viewer', name: 'eve@example.com' };
let nowMs: number;
const inbound = (texts: ThresholdTexts['inbound']): ThresholdTexts => ({ inbound: texts, outbound: {} });
const blank = inbound({});

let world: MonitorWorld;
let groupId: number;
before(async () => {
  nowMs = Math.floor(Date.now() / 60_000) * 60_000;
  world = await createMonitorWorld();
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await world.rows(
    `select ensure_fact_partition('detector_addresses', day, interval '1 day')
     from generate_series(date_trunc('day', now() - interval '2 days'), now() + interval '1 day', interval '1 day') day`,
  );
  groupId = await addGroup('web', ['198.51.100.0/28']);
  await addGroup('special', ['198.51.100.3']);
});
after(() => world[Symbol.asyncDispose]());

const addGroup = async (name: string, prefixes: string[]) =>
  (await world.protection.saveGroup(
    ada,
    world.siteId,
    null,
    { name, prefixes, thresholds: inbound({ pps: '40k' }) },
    0,
  ))!;

/** A minute with so many packets in each of its seconds. */
async function store(address: string, ago: number, pps: number): Promise<void> {
  const rates = metrics.map((metric) => (metric === 'pps' ? pps : 0));
  await world.rows(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
     values (to_timestamp($1::float8), $2, $3, 'uplink0', $4, false, $5, $5, 0, 0)`,
    [nowMs / 1000 - ago * 60, world.siteId, world.sensor.id, address, rates],
  );
}
const start = (texts: ThresholdTexts, actor: Actor = ada) =>
  world.protection.startGroupReplay(actor, world.siteId, groupId, texts);
const newest = async () => (await world.protection.listGroupReplays(world.siteId, groupId, 10))[0]!;
const drain = () => world.protection.replays.drain();

test('what-if of a group replays each address to which the group applies, beside its own thresholds', async () => {
  await store('198.51.100.1', 500, 30_000);
  await store('198.51.100.1', 100, 30_000);
  await store('198.51.100.2', 100, 100_000);
  await store('198.51.100.4', 100, 10);
  await store('198.51.100.3', 100, 100_000);
  await store('198.51.100.99', 100, 100_000);
  // What an address sets by itself stays as it is.
  await world.protection.setServerThresholds(
    ada,
    world.siteId,
    { address: '198.51.100.4' },
    inbound({ pps: '5' }),
    0,
  );
  const id = await start(inbound({ pps: '10k' }));
  const waiting = await newest();
  assert.deepEqual([waiting.id, waiting.addresses, waiting.done, waiting.finishedAtMs], [id, null, 0, null]);
  await drain();
  const replay = await newest();
  assert.deepEqual([replay.addresses, replay.done, replay.failure, replay.cancelledBy], [3, 3, null, null]);
  assert.ok(replay.finishedAtMs !== null);
  assert.deepEqual([replay.askedBy, replay.asked], [ada.name, { inbound: { pps: 10_000 }, outbound: {} }]);
  const found = await world.protection.listReplayed(world.siteId, id!);
  assert.deepEqual(
    found.map((one) => [
      ...[one.address, one.minutes, one.fired, one.certain, one.present],
      ...[one.lost, one.added],
    ]),
    [
      ['198.51.100.1', 2, 2, 2, 0, 0, 2],
      ['198.51.100.2', 1, 1, 1, 1, 0, 0],
      ['198.51.100.4', 1, 1, 1, 1, 0, 0],
    ],
  );
  assert.deepEqual(found[1]!.strongest, {
    ...{ direction: 'inbound', metric: 'pps', rate: 100_000, ratio: 10 },
    fromMs: nowMs - 100 * 60_000,
  });
  assert.deepEqual(await world.protection.listReplayed(world.siteId + 1, id!), [], 'not of another site');
  const { settings } = await world.protection.describeSite(world.siteId, []);
  assert.deepEqual(settings.groups.find((one) => one.id === groupId)!.thresholds.inbound, { pps: 40_000 });
});

test('one replay of a site waits or runs at once, also when several are asked for together', async () => {
  const asked = await Promise.allSettled([start(blank), start(blank), start(blank)]);
  assert.equal(asked.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const one of asked)
    if (one.status === 'rejected')
      assert.match(String(one.reason), /A replay of the group "web" is under way/);
  await drain();
  assert.notEqual(await start(blank), null);
  await drain();
});

test('a replay that is cancelled ends with the address that is under way, keeps what it found, and makes room', async () => {
  const id = (await start(blank))!;
  await world.protection.cancelGroupReplay(ada, world.siteId, id);
  await drain();
  const replay = await newest();
  assert.deepEqual([replay.cancelledBy, replay.done, replay.addresses], [ada.name, 0, null]);
  assert.equal(await world.protection.cancelGroupReplay(ada, world.siteId, id), false, 'it has ended');
  assert.equal(await world.protection.cancelGroupReplay(ada, world.siteId + 1, (await start(blank))!), false);
  await drain();
  assert.equal((await newest()).cancelledBy, null);
});

test('a worker that died is followed by another one after its last stored address', async () => {
  const id = (await start(blank))!;
  // As a process leaves it that was killed after the first address.
  await world.rows(
    `update protection_replays set term = 5, attempts = 1, claimed_until = svc_now() + interval '60 seconds', done = 1,
     addresses = '{198.51.100.1,198.51.100.2,198.51.100.4}' where id = $1`,
    [id],
  );
  await world.rows(
    `insert into protection_replay_addresses (replay_id, address, minutes, fired, certain, present) values ($1, '198.51.100.1', 7, 7, 7, 7)`,
    [id],
  );
  await drain();
  assert.equal((await newest()).done, 1, 'its claim lasts a minute');
  await world.rows(`update protection_replays set claimed_until = svc_now() where id = $1`, [id]);
  await drain();
  assert.deepEqual([(await newest()).done, (await newest()).finishedAtMs !== null], [3, true]);
  const found = await world.protection.listReplayed(world.siteId, id);
  assert.deepEqual(
    found.map((one) => [one.address, one.minutes]),
    [
      ['198.51.100.1', 7],
      ['198.51.100.2', 1],
      ['198.51.100.4', 1],
    ],
  );
});

test('only operators start and cancel replays, wrong thresholds are refused, and both are in the audit trail', async () => {
  await assert.rejects(start(blank, eve), { code: 'operators.read_only' });
  await assert.rejects(start(inbound({ pps: 'lots' })), { code: 'protection.invalid' });
  assert.equal(await world.protection.startGroupReplay(ada, world.siteId, 999_999, blank), null);
  const id = (await start(inbound({ pps: 'off' })))!;
  await assert.rejects(world.protection.cancelGroupReplay(eve, world.siteId, id), {
    code: 'operators.read_only',
  });
  await world.protection.cancelGroupReplay(ada, world.siteId, id);
  const rows = await world.rows<{ operation: string; after: unknown }>(
    `select operation, after from audit_entries where operation like 'what_if.%' order by id desc limit 2`,
  );
  assert.deepEqual(
    rows.map((one) => one.operation),
    ['what_if.cancel', 'what_if.start'],
  );
  assert.deepEqual(rows[1]!.after, { siteId: world.siteId, 'inbound pps': 'not judged' });
});

test('a replay of a group that is removed meanwhile ends and says so', async () => {
  const id = await addGroup('short-lived', ['198.51.100.64/28']);
  await world.protection.startGroupReplay(ada, world.siteId, id, blank);
  const group = (await world.protection.describeSite(world.siteId, [])).settings.groups.find(
    (one) => one.id === id,
  )!;
  await world.protection.removeGroup(ada, world.siteId, id, group.revision);
  await drain();
  const [replay] = await world.protection.listGroupReplays(world.siteId, id, 1);
  assert.equal(replay!.failure, 'The group was removed.');
});
