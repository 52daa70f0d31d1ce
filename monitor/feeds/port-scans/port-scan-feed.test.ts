import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Value } from 'typebox/value';
import { PortScansRequest, type ScanRequest, ScanRequestUpdates } from '#contracts/admin-api/port-scans.ts';
import type { ScanReport } from '#contracts/sensor-api/port-scans.ts';
import { send } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import {
  heartbeat,
  listInterfaces,
  listServers,
  result,
  scanId,
  secondsAgo,
  started,
} from '#monitor/scans/testing/scan-world.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import type { RunningFeed, TickResult } from '../index.ts';

let world: World;
const sensor = { id: 0, siteId: 0 };
const address = '203.0.113.10';
const assignedAt = secondsAgo(86_400);

before(async () => {
  world = await createWorld();
  const { pool } = world.database;
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const names = { host_name: 'host-1', node: 'hv-1', sensor_version: '0.1.24' };
  Object.assign(sensor, {
    id: (await world.sensors.enrol({ token, ...names }))!.sensor_id,
    siteId: world.siteId,
  });
  await pool.query(
    `insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'uplink0', 'uplink'), ($1, $2, 'br0', 'bridge')`,
    [world.siteId, sensor.id],
  );
  await listInterfaces(pool, sensor.id);
  await listServers(pool, [
    { vmId: 1, addresses: [address] },
    { vmId: 2, addresses: ['203.0.113.11'] },
  ]);
});
after(async () => {
  await feed?.loop.stop();
  await world[Symbol.asyncDispose]();
});
beforeEach(async () => {
  const { operations } = world;
  operations.postedUpdates.length = 0;
  operations.postedScans.length = 0;
  operations.scanRequests = [];
  operations.updateOutcome = () => 'accepted';
  operations.scanReceipt = () => 'accepted';
  operations.intercept = () => false;
  operations.targets = [targetOf(4, 1, address)];
  await world.database.pool.query(
    'truncate scan_requests, scan_attempts, scan_observations, feed_cursors, feed_states, leases, allocation_targets cascade',
  );
  await startFeed();
});

let feed: RunningFeed | null = null;
/** The feed as a process has it that has just started, after the one before has ended. */
async function startFeed(): Promise<void> {
  await feed?.loop.stop();
  feed = world.createFeed().find('port-scans');
}

async function tick(): Promise<TickResult> {
  const ticked = await feed!.runOnce();
  if (typeof ticked === 'string') throw new Error(`no tick: ${ticked}`);
  return ticked;
}

const targetOf = (id: number, vmId: number, of: string, at = assignedAt) => ({
  ...{ id, billing_account_id: 1, virtual_machine_id: vmId, cluster_id: 7, address: of, assigned_at: at },
});

function requestOf(id: string, change: Partial<ScanRequest> = {}): ScanRequest {
  return {
    ...{ id, billing_account_id: 1, virtual_machine_id: 1, cluster_id: 7, allocation_id: 4, address },
    ...{ assigned_at: assignedAt, kind: 'manual', profile: 'full', revision: 1 },
    ...{ requested_at: secondsAgo(5), expires_at: secondsAgo(-86_395), ...change },
  };
}

const plan = () => world.scans.readPlan(sensor);
const planned = async () => (await plan()).requests.map((one) => one.scan_request_id);
async function targetId(of = address): Promise<string> {
  return (await plan()).targets.find((one) => one.address === of)!.target_id;
}
const report = async (body: ScanReport) => (await world.scans.receive(sensor, body)).receipt;
const told = () =>
  world.operations.postedUpdates.flatMap((body) => {
    assert.ok(Value.Check(ScanRequestUpdates, body));
    return body.updates.map(({ id, state }) => `${id.slice(-2)} ${state}`);
  });
const sent = () =>
  world.operations.postedScans.flatMap((body) => {
    assert.ok(Value.Check(PortScansRequest, body), JSON.stringify([...Value.Errors(PortScansRequest, body)]));
    return body.results;
  });

test('NET-2.7.2: a request is claimed, planned once the claim is taken, and runs when a sensor has started it', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  assert.deepEqual(await planned(), []);
  const { counts, error } = await tick();
  assert.deepEqual([error, counts.requests, counts.claimed], [null, 1, 1]);
  assert.deepEqual(told(), [`${id.slice(-2)} claimed`]);
  assert.deepEqual(await planned(), [id]);
  await tick();
  assert.equal(told().length, 1, 'a claim is told once');
  const target = await targetId();
  await report(started(target, id, { scan_request_id: id, at: secondsAgo(30), pool: 'customer' }));
  await tick();
  await tick();
  await report(
    heartbeat(target, id, { scan_request_id: id, at: secondsAgo(20), phase: 'udp_discovery', percent: 50 }),
  );
  await tick();
  const updates = world.operations.postedUpdates.flatMap((body) => body.updates);
  assert.deepEqual(
    updates.map(({ state, progress }) => [state, progress]),
    [
      ['claimed', null],
      ['running', null],
      ['running', 65],
    ],
  );
  assert.deepEqual(await planned(), [id], 'while it runs');
  await report(result(target, 'full', [22], { scan_id: id, scan_request_id: id, endedAgo: 2 }));
  assert.deepEqual([await planned(), (await plan()).withdrawn], [[], []]);
});

test('NET-4.e: all pages of requests are read, and those of clusters without a site are not claimed', async () => {
  const ids = Array.from({ length: 5 }, scanId);
  world.operations.scanRequests = ids.map((id, n) => requestOf(id, n === 4 ? { cluster_id: 99 } : {}));
  const { counts } = await tick();
  assert.deepEqual([counts.requests, counts.claimed], [5, 4]);
  assert.deepEqual((await planned()).sort(), ids.slice(0, 4).sort());
});

test('NET-1.6: a cancelled request is withdrawn and never revived; one that has started may finish', async () => {
  const [refused, gone, running] = [scanId(), scanId(), scanId()];
  world.operations.updateOutcome = ({ id }) => (id === refused ? 'cancelled' : 'accepted');
  world.operations.scanRequests = [refused, gone, running].map((id) => requestOf(id));
  await tick();
  assert.deepEqual((await planned()).sort(), [gone, running].sort());
  await report(started(await targetId(), running, { scan_request_id: running }));
  world.operations.scanRequests = [];
  await tick();
  assert.deepEqual(await planned(), []);
  assert.deepEqual((await plan()).withdrawn.sort(), [refused, gone].sort());
  world.operations.updateOutcome = () => 'accepted';
  world.operations.scanRequests = [requestOf(refused)];
  await tick();
  assert.deepEqual(await planned(), []);
});

test('a running request that operations has cancelled ends at the sensor', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  await report(started(await targetId(), id, { scan_request_id: id }));
  world.operations.updateOutcome = () => 'cancelled';
  await tick();
  assert.deepEqual([await planned(), (await plan()).withdrawn], [[], [id]]);
});

test('NET-3.1: an unstarted request is not planned after its window to start; one that has started is', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id, { expires_at: secondsAgo(1) })];
  await tick();
  assert.deepEqual(await planned(), []);
  const begun = scanId();
  world.operations.scanRequests = [requestOf(begun)];
  await tick();
  await report(started(await targetId(), begun, { scan_request_id: begun }));
  await world.database.pool.query("update scan_requests set expires_at = svc_now() - interval '1 second'");
  assert.deepEqual(await planned(), [begun]);
});

test('NET-2.7.9: a request is planned under the connection that confirmed it', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  assert.deepEqual(await planned(), [id]);
  await world.database.pool.query('update operations_connection set revision = revision + 1');
  assert.deepEqual(await planned(), []);
  await tick();
  assert.deepEqual(await planned(), [id]);
});

test('NET-2.7.11: a result of a cluster that no site has waits', async () => {
  await report(result(await targetId(), 'common', [22]));
  await world.sites.mapCluster(systemActor, 7, null);
  await world.sites.mapCluster(systemActor, 8, world.siteId);
  assert.deepEqual([(await tick()).counts.due, sent().length], [0, 0]);
  await world.sites.mapCluster(systemActor, 8, null);
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await tick();
  assert.equal(sent().length, 1);
});

test('NET-2.7.3: what a sensor has started is planned for no other sensor', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  const target = await targetId();
  await report(started(target, id, { scan_request_id: id }));
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const names = { host_name: 'host-2', node: 'hv-2', sensor_version: '0.1.24' };
  const other = { id: (await world.sensors.enrol({ token, ...names }))!.sensor_id, siteId: world.siteId };
  const { pool } = world.database;
  await pool.query(`insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'br0', 'bridge')`, [
    world.siteId,
    other.id,
  ]);
  await listInterfaces(pool, other.id);
  await pool.query("update inventory_vms set node = 'hv-2' where vm_id = 1");
  const moved = await world.scans.readPlan(other);
  assert.deepEqual([moved.targets.length, moved.requests], [1, []]);
  await pool.query("update inventory_vms set node = 'hv-1' where vm_id = 1");
});

test('NET-2.7.9, NET-4.f: a result is delivered until its receipt is there, for the allocation of the request', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  const target = await targetId();
  const body = result(target, 'full', [22, 443], { scan_id: id, scan_request_id: id, endedAgo: 20 });
  await report(body);
  world.operations.intercept = (_request, response, path) => {
    if (path !== '/protect/port-scans/') return false;
    send(response, 500, {});
    return true;
  };
  assert.equal((await tick()).counts.failed, 1);
  await startFeed();
  world.operations.intercept = () => false;
  const { counts } = await tick();
  assert.equal(counts.accepted, 1);
  const [delivered] = sent();
  assert.deepEqual(
    [
      delivered!.scan_id,
      delivered!.request_id,
      delivered!.allocation_id,
      delivered!.assigned_at,
      delivered!.address,
    ],
    [id, id, 4, assignedAt, address],
  );
  assert.deepEqual(delivered!.services, body.services);
  assert.deepEqual([delivered!.started_at, delivered!.finished_at], [body.started_at, body.finished_at]);
  await startFeed();
  assert.equal((await tick()).counts.due, 0, 'it is delivered once');
  const state = await feed!.state();
  assert.ok(state!.lastSuccessAtMs && state!.lastError === null, 'NET-2.9');
});

test('NET-2.7.9: a newer scan of a sensor replaces neither a request’s undelivered result nor another profile', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  const target = await targetId();
  await report(result(target, 'full', [22], { scan_id: id, scan_request_id: id, endedAgo: 900 }));
  await report(result(target, 'common', [22], { endedAgo: 700 }));
  const hourly = result(target, 'common', [22, 80], { endedAgo: 100 });
  const daily = result(target, 'full', [22, 80], { endedAgo: 50 });
  await report(hourly);
  await report(daily);
  await tick();
  assert.deepEqual(
    sent()
      .map(({ scan_id }) => scan_id)
      .sort(),
    [id, hourly.scan_id, daily.scan_id].sort(),
  );
});

test('NET-2.7.9: under a changed connection a request’s result waits until the request is confirmed again', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  await report(result(await targetId(), 'full', [22], { scan_id: id, scan_request_id: id }));
  await world.database.pool.query('update operations_connection set revision = revision + 1');
  world.operations.scanRequests = [];
  assert.equal((await tick()).counts.due, 0);
  world.operations.scanRequests = [requestOf(id, { revision: 2 })];
  await tick();
  assert.deepEqual(
    sent().map(({ scan_id }) => scan_id),
    [id],
  );
});

test('NET-2.7.11: a sensor’s own scan is sent for the allocation that the address had when the scan began, and for no other', async () => {
  const { operations } = world;
  const later = await targetId('203.0.113.11');
  operations.targets = [targetOf(4, 1, address), targetOf(5, 2, '203.0.113.11', secondsAgo(30))];
  const early = result(later, 'common', [22], { endedAgo: 60 });
  const own = result(await targetId(), 'common', [22], { endedAgo: 60 });
  await report(early);
  await report(own);
  const { counts } = await tick();
  assert.deepEqual([counts.due, counts.no_allocation], [1, 1]);
  assert.deepEqual(
    sent().map((one) => [one.scan_id, one.request_id, one.allocation_id]),
    [[own.scan_id, null, 4]],
  );
});

test('a result that operations can not match is not sent again; one of another source is', async () => {
  const own = result(await targetId(), 'common', [22]);
  await report(own);
  world.operations.scanReceipt = () => 'source_conflict';
  await tick();
  assert.deepEqual(
    (await world.feeds.listHeldBack()).map((one) => [one.feed, one.outcome]),
    [['port-scans', 'source_conflict']],
  );
  world.operations.scanReceipt = () => 'unmatched';
  assert.equal((await tick()).counts.unmatched, 1);
  assert.equal((await tick()).counts.due, 0);
});

test('NET-9.3: operations that does not take port scans is asked for nothing, and the state says why', async () => {
  const { operations } = world;
  const { protect_port_scan_ingest: _, ...older } = operations.capabilities;
  const newer = operations.capabilities;
  operations.capabilities = older;
  await world.connection.check();
  const asked: string[] = [];
  operations.intercept = (_request, _response, path) => {
    asked.push(path);
    return false;
  };
  await report(result(await targetId(), 'common', [22]));
  const { error } = await tick();
  assert.match(error!, /lacks the permission for this feed/);
  assert.deepEqual(new Set(asked), new Set(['/discovery/']));
  operations.capabilities = newer;
  await tick();
  assert.equal(sent().length, 1);
});

test('NET-2.7.11: what a sensor reports of its own server under the id of another’s scan moves and opens nothing there', async () => {
  const { pool } = world.database;
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const names = { host_name: 'host-3', node: 'hv-3', sensor_version: '0.1.24' };
  const thief = { id: (await world.sensors.enrol({ token, ...names }))!.sensor_id, siteId: world.siteId };
  await pool.query(
    `insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'uplink0', 'uplink'), ($1, $2, 'br0', 'bridge')`,
    [world.siteId, thief.id],
  );
  await listInterfaces(pool, thief.id);
  await pool.query("update inventory_vms set node = 'hv-3' where vm_id = 2");
  const stolen = (await world.scans.readPlan(thief)).targets[0]!.target_id;
  const forge = (id: string, requestId: string | null) =>
    world.scans.receive(
      thief,
      result(stolen, 'full', [31_337], { scan_id: id, scan_request_id: requestId, endedAgo: 900 }),
    );
  const [asked, own] = [scanId(), scanId()];
  world.operations.scanRequests = [requestOf(asked)];
  await tick();
  await forge(asked, asked);
  assert.deepEqual(await planned(), [asked], 'the request is still to be scanned');
  const target = await targetId();
  await report(result(target, 'full', [22], { scan_id: asked, scan_request_id: asked, endedAgo: 20 }));
  await report(result(target, 'common', [443], { scan_id: own, endedAgo: 20 }));
  await forge(own, null);
  await tick();
  const found = sent().map((one) => [one.scan_id, one.allocation_id, one.services.map(({ port }) => port)]);
  assert.deepEqual(
    found.sort(),
    [
      [asked, 4, [22]],
      [own, 4, [443]],
    ].sort(),
  );
  const ports = await pool.query('select distinct port from scan_observations where vm_id = 1 order by port');
  assert.deepEqual(
    ports.rows.map(({ port }) => port),
    [22, 443],
  );
  await pool.query("update inventory_vms set node = 'hv-1' where vm_id = 2");
});

test('answers about other requests prove nothing', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  world.operations.intercept = (request, response, path) => {
    if (path !== '/protect/scan-requests/' || request.method !== 'POST') return false;
    send(response, 200, { outcomes: [{ id: scanId(), outcome: 'accepted' }] });
    return true;
  };
  assert.match((await tick()).error!, /invalid or incomplete/);
  assert.deepEqual(await planned(), []);
});

test('NET-8.5: a result of 4,096 ports is delivered as it is', async () => {
  const target = await targetId();
  const ports = Array.from({ length: 4096 }, (_, n) => n + 1);
  const own = result(target, 'full', ports);
  for (const one of own.services) one.extra_info = 'x'.repeat(256);
  await report(own);
  await report(result(target, 'common', [22]));
  await tick();
  assert.equal(sent().find(({ scan_id }) => scan_id === own.scan_id)!.services.length, 4096);
});

test('a claim is told again while nothing has started, and given back when no site has the cluster any more', async () => {
  const id = scanId();
  world.operations.scanRequests = [requestOf(id)];
  await tick();
  await world.database.pool.query("update scan_requests set told_at = svc_now() - interval '6 minutes'");
  await tick();
  assert.deepEqual(told(), [`${id.slice(-2)} claimed`, `${id.slice(-2)} claimed`]);
  await world.sites.mapCluster(systemActor, 7, null);
  await tick();
  assert.equal(told().at(-1), `${id.slice(-2)} withdrawn`);
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await tick();
  assert.equal(told().at(-1), `${id.slice(-2)} claimed`, 'it is claimed again');
  assert.deepEqual(await planned(), [id]);
});

test('NET-2.7.10: a partial scan does not take the place of a complete one that was not delivered yet', async () => {
  const target = await targetId();
  const old = result(target, 'common', [25], { endedAgo: 900 });
  const complete = result(target, 'common', [22, 80], { endedAgo: 500 });
  const partial = result(target, 'common', [22], { endedAgo: 100, state: 'partial', notes: ['interrupted'] });
  for (const one of [old, complete, partial]) await report(one);
  await tick();
  assert.deepEqual(
    sent()
      .map(({ scan_id }) => scan_id)
      .sort(),
    [complete.scan_id, partial.scan_id].sort(),
  );
});
