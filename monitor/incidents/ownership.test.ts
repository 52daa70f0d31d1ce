import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import {
  type OperationsStub,
  startOperationsStub,
} from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { createIncidentSpool, observation } from './testing/observations.ts';

const address = '203.0.113.10';
const mac = '02:00:00:00:00:2a';
let server: MonitorServer;
let operations: OperationsStub;
const credentials = new Map<string, string>();
const spool = createIncidentSpool();

before(async () => {
  operations = await startOperationsStub();
  server = await startMonitorServer({ SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1' });
  const { monitor, siteId } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  await monitor.connection.save(systemActor, {
    baseUrl: operations.url,
    token: operations.token,
    isEnabled: true,
  });
  for (const node of ['node-1', 'node-2']) {
    const { token } = await monitor.sensors.createToken(systemActor, siteId, {
      node: { name: node, clusterId: 7 },
    });
    const enrolled = await monitor.sensors.enrol({ token, host_name: node, node, sensor_version: '0.2.0' });
    credentials.set(node, enrolled!.credential);
  }
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await operations[Symbol.asyncDispose]();
});
beforeEach(() =>
  server.database.pool.query(
    'truncate incidents, incident_observations, vm_placements, inventory_vms, inventory_interfaces, events cascade',
  ),
);

/** Lists the server on a node and imports it; what was listed counts as known an hour ago. */
async function importOn(node: string): Promise<void> {
  const nic = { id: 1, mac_address: mac, bridge: 'br0', vlan: null, addresses: [address] };
  const vm = { id: 42, cluster_id: 7, node, name: 'web', state: 'running' };
  operations.vms = [{ ...vm, updated_at: new Date().toISOString(), interfaces: [nic] }];
  assert.deepEqual(await server.monitor.inventory.syncNow(systemActor), { outcome: 'imported' });
}

async function say(node: string, ...incidents: IncidentObservation[]): Promise<void> {
  const answer = await fetch(`${server.url}/agent/v1/incidents`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credentials.get(node)}`,
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
    },
    body: new Uint8Array(compressUpload(encodeUpload(spool(...incidents)))),
  });
  assert.equal(answer.status, 200);
}

interface Row {
  id: string;
  target_kind: string;
  target: string;
  state: string;
  is_withdrawn: boolean;
  correlation_id: string | null;
}
const incidents = async () =>
  (
    await server.database.pool.query<Row>(
      'select id, target_kind, target, state, is_withdrawn, correlation_id from incidents order by started_at, id',
    )
  ).rows;
const foreign = async () =>
  (
    await server.database.pool.query<{ n: number }>(
      'select count(*)::int as n from incident_observations where is_foreign and incident_id is null',
    )
  ).rows[0]!.n;
const flood = (part: Partial<IncidentObservation> = {}) =>
  observation({
    startedAtMs: Date.now() - 20_000,
    lastObservedAtMs: Date.now(),
    target: address,
    ...part,
  } as never);

test("a stolen credential of one host makes no incident of another node's server", async () => {
  await importOn('node-1');
  await say('node-2', flood());
  assert.deepEqual(await incidents(), []);
  assert.equal(await foreign(), 1, 'it is kept, for operators');
  const longAgo = { startedAtMs: Date.now() - 86_400_000 };
  await say('node-2', flood({ ...longAgo, lastObservedAtMs: Date.now() - 80_000_000 }));
  assert.deepEqual(await incidents(), [], 'nor of a time before');
  const { rows } = await server.database.pool.query('select kind from events');
  assert.deepEqual(
    rows.filter(({ kind }) => kind === 'ddos_detected'),
    [],
  );
  await say('node-1', flood());
  assert.equal((await incidents()).length, 1, 'its own sensor does');
});

test('an incident that another node made before the inventory was known is withdrawn with the import', async () => {
  await say('node-2', flood());
  assert.equal((await incidents())[0]!.is_withdrawn, false, 'of no server, every sensor speaks');
  await importOn('node-1');
  const [withdrawn] = await incidents();
  assert.deepEqual([withdrawn!.is_withdrawn, withdrawn!.state], [true, 'stale']);
  assert.equal(await foreign(), 1);
});

test('what a sensor said before the import showed that the server is on its node counts from then on', async () => {
  await importOn('node-1');
  await say('node-2', flood());
  assert.equal((await incidents()).length, 0);
  await server.database.pool.query(`update inventory_state set listed_at = listed_at - interval '1 minute'`);
  await importOn('node-2');
  assert.equal((await incidents()).length, 1);
  assert.equal(await foreign(), 0);
});

test('a server that moves during an attack has one incident, which ends by the recovery of the node that has it', async () => {
  await importOn('node-1');
  const before = flood();
  await say('node-1', before);
  await server.database.pool.query(`update inventory_state set listed_at = listed_at - interval '1 minute'`);
  await importOn('node-2');
  const after = flood({ startedAtMs: Date.now() - 1000 });
  await say('node-2', after);
  const [one, ...others] = await incidents();
  assert.deepEqual([others.length, one!.state], [0, 'active']);
  // The old node's minute has passed: it does not speak for the server any more, and can't recover it.
  await server.database.pool.query(
    `update vm_placements set ended_at = ended_at - interval '5 minutes' where ended_at is not null`,
  );
  await say('node-2', {
    ...after,
    revision: 2,
    state: 'recovered',
    current: null,
    lastObservedAtMs: Date.now() + 1000,
    recoveredAtMs: Date.now() + 1000,
  });
  assert.deepEqual([(await incidents()).length, (await incidents())[0]!.state], [1, 'recovered']);
});

test('an outbound attack is blamed on a server only where the MAC that sent it is its own; else it is the capture’s', async () => {
  await importOn('node-1');
  const outbound = { direction: 'outbound' as const, capture: 'br0' };
  await say('node-1', flood({ ...outbound, deviceKey: '' }));
  await say('node-1', flood({ ...outbound, deviceKey: 'br0|02:00:00:00:00:99' }));
  assert.deepEqual(
    (await incidents()).map(({ target_kind, target }) => [target_kind, target]),
    [['capture', 'br0']],
  );
  await say('node-1', flood({ ...outbound, deviceKey: `br0|${mac}` }));
  assert.deepEqual((await incidents()).map(({ target_kind, target }) => [target_kind, target]).sort(), [
    ['capture', 'br0'],
    ['host', address],
  ]);
  await say('node-2', flood({ ...outbound, deviceKey: `br0|${mac}` }));
  assert.equal((await incidents()).length, 2, 'another node can’t blame it');
});

test('attacks on two servers of a site within a minute are one correlation', async () => {
  await say('node-1', flood({ target: { kind: 'host', value: '198.51.100.1' } }));
  assert.equal((await incidents())[0]!.correlation_id, null, 'one alone is none');
  await say('node-2', flood({ target: { kind: 'host', value: '198.51.100.2' } }));
  const [first, second] = await incidents();
  assert.notEqual(first!.correlation_id, null);
  assert.equal(first!.correlation_id, second!.correlation_id);
});

test('attack periods: exact hosts apart from what can be assigned to no address, without drills', async () => {
  const now = Date.now();
  await say(
    'node-1',
    flood(),
    flood({ target: { kind: 'prefix', value: '203.0.113.0/24' } }),
    flood({ target: { kind: 'host', value: '203.0.113.20' }, class: 'other' }),
    flood({ target: { kind: 'host', value: '203.0.113.30' }, drill: true }),
    flood({ target: { kind: 'host', value: '203.0.113.40' }, severity: 'info', class: 'high_volume' }),
  );
  const read = (...addresses: string[]) =>
    server.monitor.incidents.readAttackPeriods(server.siteId, addresses, now - 60_000, now + 1000);
  const all = await read(address, '203.0.113.20', '203.0.113.30', '203.0.113.40');
  assert.deepEqual(
    all.attacks.map(({ address: of, captures }) => [of, captures.length]),
    [[address, 1]],
  );
  assert.deepEqual(all.unassignable.map(({ kind, target }) => [kind, target]).sort(), [
    ['host', '203.0.113.20'],
    ['prefix', '203.0.113.0/24'],
  ]);
  assert.deepEqual((await read('192.0.2.1')).attacks, []);
  const early = await server.monitor.incidents.readAttackPeriods(server.siteId, [address], 0, now - 60_000);
  assert.deepEqual(early, { attacks: [], unassignable: [] });
});

test('NET-2.4.5: an unassignable attack concerns minutes until 90 seconds after its last observation, whichever minutes are asked for', async () => {
  const minute = 60_000;
  const now = Math.floor(Date.now() / minute) * minute;
  const silent = { startedAtMs: now - 20 * minute, lastObservedAtMs: now - 10 * minute };
  await say(
    'node-1',
    flood({ ...silent, target: { kind: 'prefix', value: '203.0.113.0/24' } }),
    flood({
      ...silent,
      state: 'recovered',
      current: null,
      recoveredAtMs: silent.lastObservedAtMs,
      class: 'other',
    }),
  );
  const asked = async (minuteMs: number, before: number, behind: number) => {
    const { attacks, unassignable } = await server.monitor.incidents.readAttackPeriods(
      ...([server.siteId, [address], minuteMs - before * minute, minuteMs + (1 + behind) * minute] as const),
    );
    return [...attacks, ...unassignable]
      .filter((one) => one.startedAtMs < minuteMs + minute && one.endedAtMs >= minuteMs)
      .map(({ incidentId }) => incidentId);
  };
  for (let ago = 25; ago > 0; ago -= 1) {
    const alone = await asked(now - ago * minute, 0, 0);
    assert.equal(alone.length, ago > 20 ? 0 : ago >= 10 ? 2 : ago === 9 ? 1 : 0, `${ago} minutes ago`);
    for (const [before, behind] of [
      [1, 0],
      [0, 1],
      [30, 0],
      [30, 30],
    ] as const)
      assert.deepEqual(await asked(now - ago * minute, before, behind), alone, `${ago} minutes ago`);
  }
});
