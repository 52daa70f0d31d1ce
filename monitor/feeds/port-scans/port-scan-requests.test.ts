/** Scan requests of operations: claimed, planned, told of, cancelled and given back. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { send } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import {
  heartbeat,
  listInterfaces,
  result,
  scanId,
  secondsAgo,
  started,
} from '#monitor/scans/testing/scan-world.ts';
import { createPortScanStage, type PortScanStage, requestOf } from '../testing/port-scan-stage.ts';

let stage: PortScanStage;
before(async () => {
  stage = await createPortScanStage();
});
after(() => stage[Symbol.asyncDispose]());
beforeEach(() => stage.reset());

test('NET-2.7.2: a request is claimed, planned once the claim is taken, and runs when a sensor has started it', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  assert.deepEqual(await stage.planned(), []);
  const { counts, error } = await stage.tick();
  assert.deepEqual([error, counts.requests, counts.claimed], [null, 1, 1]);
  assert.deepEqual(stage.told(), [`${id.slice(-2)} claimed`]);
  assert.deepEqual(await stage.planned(), [id]);
  await stage.tick();
  assert.equal(stage.told().length, 1, 'a claim is told once');
  const target = await stage.targetId();
  await stage.report(started(target, id, { scan_request_id: id, at: secondsAgo(30), pool: 'customer' }));
  await stage.tick();
  await stage.tick();
  await stage.report(
    heartbeat(target, id, { scan_request_id: id, at: secondsAgo(20), phase: 'udp_discovery', percent: 50 }),
  );
  await stage.tick();
  const updates = stage.world.operations.postedUpdates.flatMap((body) => body.updates);
  assert.deepEqual(
    updates.map(({ state, progress }) => [state, progress]),
    [
      ['claimed', null],
      ['running', null],
      ['running', 65],
    ],
  );
  assert.deepEqual(await stage.planned(), [id], 'while it runs');
  await stage.report(result(target, 'full', [22], { scan_id: id, scan_request_id: id, endedAgo: 2 }));
  assert.deepEqual([await stage.planned(), (await stage.plan()).withdrawn], [[], []]);
});

test('NET-4.e: all pages of requests are read, and those of clusters without a site are not claimed', async () => {
  const ids = Array.from({ length: 5 }, scanId);
  stage.world.operations.scanRequests = ids.map((id, n) => requestOf(id, n === 4 ? { cluster_id: 99 } : {}));
  const { counts } = await stage.tick();
  assert.deepEqual([counts.requests, counts.claimed], [5, 4]);
  assert.deepEqual((await stage.planned()).sort(), ids.slice(0, 4).sort());
});

test('NET-1.6: a cancelled request is withdrawn and never revived; one that has started may finish', async () => {
  const [refused, gone, running] = [scanId(), scanId(), scanId()];
  stage.world.operations.updateOutcome = ({ id }) => (id === refused ? 'cancelled' : 'accepted');
  stage.world.operations.scanRequests = [refused, gone, running].map((id) => requestOf(id));
  await stage.tick();
  assert.deepEqual((await stage.planned()).sort(), [gone, running].sort());
  await stage.report(started(await stage.targetId(), running, { scan_request_id: running }));
  stage.world.operations.scanRequests = [];
  await stage.tick();
  assert.deepEqual(await stage.planned(), []);
  assert.deepEqual((await stage.plan()).withdrawn.sort(), [refused, gone].sort());
  stage.world.operations.updateOutcome = () => 'accepted';
  stage.world.operations.scanRequests = [requestOf(refused)];
  await stage.tick();
  assert.deepEqual(await stage.planned(), []);
});

test('a running request that operations has cancelled ends at the sensor', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  await stage.report(started(await stage.targetId(), id, { scan_request_id: id }));
  stage.world.operations.updateOutcome = () => 'cancelled';
  await stage.tick();
  assert.deepEqual([await stage.planned(), (await stage.plan()).withdrawn], [[], [id]]);
});

test('NET-3.1: an unstarted request is not planned after its window to start; one that has started is', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id, { expires_at: secondsAgo(1) })];
  await stage.tick();
  assert.deepEqual(await stage.planned(), []);
  const begun = scanId();
  stage.world.operations.scanRequests = [requestOf(begun)];
  await stage.tick();
  await stage.report(started(await stage.targetId(), begun, { scan_request_id: begun }));
  await stage.world.database.pool.query(
    "update scan_requests set expires_at = svc_now() - interval '1 second'",
  );
  assert.deepEqual(await stage.planned(), [begun]);
});

test('NET-2.7.9: a request is planned under the connection that confirmed it', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  assert.deepEqual(await stage.planned(), [id]);
  await stage.world.database.pool.query('update operations_connection set revision = revision + 1');
  assert.deepEqual(await stage.planned(), []);
  await stage.tick();
  assert.deepEqual(await stage.planned(), [id]);
});

test('NET-2.7.3: what a sensor has started is planned for no other sensor', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  const target = await stage.targetId();
  await stage.report(started(target, id, { scan_request_id: id }));
  const { token } = await stage.world.sensors.createToken(systemActor, stage.world.siteId);
  const names = { host_name: 'host-2', node: 'hv-2', sensor_version: '0.1.24' };
  const other = {
    id: (await stage.world.sensors.enrol({ token, ...names }))!.sensor_id,
    siteId: stage.world.siteId,
  };
  const { pool } = stage.world.database;
  await pool.query(`insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'br0', 'bridge')`, [
    stage.world.siteId,
    other.id,
  ]);
  await listInterfaces(pool, other.id);
  await pool.query("update inventory_vms set node = 'hv-2' where vm_id = 1");
  const moved = await stage.world.scans.readPlan(other);
  assert.deepEqual([moved.targets.length, moved.requests], [1, []]);
  await pool.query("update inventory_vms set node = 'hv-1' where vm_id = 1");
});

test('answers about other requests prove nothing', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  stage.world.operations.intercept = (request, response, path) => {
    if (path !== '/protect/scan-requests/' || request.method !== 'POST') return false;
    send(response, 200, { outcomes: [{ id: scanId(), outcome: 'accepted' }] });
    return true;
  };
  assert.match((await stage.tick()).error!, /invalid or incomplete/);
  assert.deepEqual(await stage.planned(), []);
});

test('a claim is told again while nothing has started, and given back when no site has the cluster any more', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  await stage.world.database.pool.query(
    "update scan_requests set told_at = svc_now() - interval '6 minutes'",
  );
  await stage.tick();
  assert.deepEqual(stage.told(), [`${id.slice(-2)} claimed`, `${id.slice(-2)} claimed`]);
  await stage.world.sites.mapCluster(systemActor, 7, null);
  await stage.tick();
  assert.equal(stage.told().at(-1), `${id.slice(-2)} withdrawn`);
  await stage.world.sites.mapCluster(systemActor, 7, stage.world.siteId);
  await stage.tick();
  assert.equal(stage.told().at(-1), `${id.slice(-2)} claimed`, 'it is claimed again');
  assert.deepEqual(await stage.planned(), [id]);
});

test('NET-9.3: operations that does not take port scans is asked for nothing, and the state says why', async () => {
  const { operations } = stage.world;
  const { protect_port_scan_ingest: _, ...older } = operations.capabilities;
  const newer = operations.capabilities;
  operations.capabilities = older;
  await stage.world.connection.check();
  const asked: string[] = [];
  operations.intercept = (_request, _response, path) => {
    asked.push(path);
    return false;
  };
  await stage.report(result(await stage.targetId(), 'common', [22]));
  const { error } = await stage.tick();
  assert.match(error!, /lacks the permission for this feed/);
  assert.deepEqual(new Set(asked), new Set(['/discovery/']));
  operations.capabilities = newer;
  await stage.tick();
  assert.equal(stage.sent().length, 1);
});
