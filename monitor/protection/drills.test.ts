import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type CodedError, hasCode } from '#common/errors/index.ts';
import { thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import { type Actor, systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { type DrillInput, strongestOf } from './index.ts';

const ada: Actor = { kind: 'person', id: 1, role: 'operator', name: 'ada@example.com' };
const order: DrillInput = { class: 'syn_flood', direction: 'inbound', pps: '25k', seconds: '60' };

let startMs: number;
let world: MonitorWorld;
before(async () => {
  startMs = Math.floor(Date.now() / 1000) * 1000 + 300;
  world = await createMonitorWorld({ standsAtMs: startMs });
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await world.rows(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     select n, 1, n, 7, '198.51.100.0'::inet + n, '2026-01-01T00:00:00Z', true from generate_series(1, 20) n`,
  );
  await world.rows(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     select 7, n, case when n <= 10 then 'hv-1' else 'hv-2' end, '02:00:00:00:00:01', 'br0', '198.51.100.0'::inet + n, true, '-infinity'
     from generate_series(1, 20) n`,
  );
  await world.protection.setAdditionalCidrs(ada, world.siteId, ['192.0.2.0/24'], 0);
});
after(() => world[Symbol.asyncDispose]());

const start = (address: string, change: Partial<DrillInput> = {}) =>
  world.protection.startDrill(ada, world.siteId, address, { ...order, ...change });
const planned = async (node: string) => {
  const scope = { siteId: world.siteId, node: { name: node, clusterId: 7 } };
  return (await world.protection.section.read(scope)).detection!.drills;
};
const stopAll = async () => {
  for (const drill of await world.protection.listDrills(world.siteId, null, 100))
    await world.protection.stopDrill(ada, world.siteId, drill.id);
};

test('a drill is in the plan of the sensors that protect its address, from before its first second until it ends or is stopped', async () => {
  const id = await start('198.51.100.5');
  const [drill] = await planned('hv-1');
  const { started_at, ...rest } = drill!;
  assert.deepEqual(rest, {
    id,
    target: '198.51.100.5',
    direction: 'inbound',
    class: 'syn_flood',
    pps: 25_000,
    bps: 25_000 * 60 * 8,
    seconds: 60,
  });
  const delay = Date.parse(started_at) - startMs;
  assert.ok(delay > 30_000 && delay <= 46_000, `starts in ${delay} ms: after every sensor fetched its plan`);
  assert.deepEqual(await planned('hv-2'), [], 'another node');
  const additional = await start('192.0.2.7');
  assert.deepEqual(
    (await planned('hv-2')).map((one) => one.id),
    [additional],
  );
  assert.equal(await world.protection.stopDrill(ada, world.siteId, id), true);
  assert.equal(await world.protection.stopDrill(ada, world.siteId, id), false, 'stopped once');
  assert.equal(await world.protection.stopDrill(ada, world.siteId + 1, additional), false, 'of another site');
  assert.deepEqual(
    (await planned('hv-1')).map((one) => one.id),
    [additional],
  );
  await world.standing!.set(startMs + 106_000);
  assert.deepEqual(await planned('hv-1'), []);
  await world.standing!.set(startMs);
  await stopAll();
});

test('at most eight drills of a site wait or run at once, however many are started at the same time', async () => {
  const started = await Promise.allSettled(
    Array.from({ length: 14 }, (_, i) => start(`198.51.100.${i + 1}`)),
  );
  assert.equal(started.filter((one) => one.status === 'fulfilled').length, 8);
  const [refused] = started.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
  assert.match(refused!.message, /At most 8 drills/);
  await stopAll();
  await start('198.51.100.1');
  await assert.rejects(start('198.51.100.1', { class: 'udp_flood' }), /is waiting or running/);
  await stopAll();
});

test('bad input of a drill is refused with what to write', async () => {
  const fieldsOf = async (change: Partial<DrillInput>) => {
    try {
      await start('198.51.100.5', change);
    } catch (error) {
      return Object.keys((error as CodedError).details.fields as object);
    }
    return assert.fail('was not refused');
  };
  assert.deepEqual(await fieldsOf({ class: 'other' }), ['class']);
  assert.deepEqual(await fieldsOf({ class: 'high_volume', direction: 'up' }), ['class', 'direction']);
  assert.deepEqual(await fieldsOf({ pps: '0' }), ['pps']);
  assert.deepEqual(await fieldsOf({ pps: '1G' }), ['pps']);
  assert.deepEqual(await fieldsOf({ seconds: '601' }), ['seconds']);
  await assert.rejects(start('203.0.113.1'), /not protected, so no sensor would find the drill/);
  await assert.rejects(
    world.protection.startDrill({ ...ada, role: 'viewer' }, world.siteId, '198.51.100.5', order),
    (error) => hasCode(error, 'operators.read_only'),
  );
  const trail = await world.rows<{ operation: string; actor_name: string; after: { address?: string } }>(
    "select operation, actor_name, after from audit_entries where operation like 'drill.%' order by id limit 1",
  );
  assert.deepEqual(
    [trail[0]!.operation, trail[0]!.actor_name, trail[0]!.after.address],
    ['drill.start', 'ada@example.com', '198.51.100.5'],
  );
});

test('a drill names the threshold that it exceeds most', () => {
  const { inbound, outbound } = thresholdDefaults;
  const of = (of: string, pps: number, bytes: number) => ({ class: of, pps, bps: pps * bytes * 8 });
  assert.deepEqual(strongestOf(of('syn_flood', 25_000, 60), inbound), { metric: 'syn_pps', ratio: 2.5 });
  assert.deepEqual(strongestOf(of('ack_flood', 25_000, 60), inbound), { metric: 'pps', ratio: 0.5 });
  assert.equal(strongestOf(of('udp_flood', 8_000, 512), outbound)!.metric, 'pps');
  const off = { ...inbound, pps: null, bps: null };
  assert.equal(strongestOf(of('ack_flood', 1e6, 60), off), null);
});
