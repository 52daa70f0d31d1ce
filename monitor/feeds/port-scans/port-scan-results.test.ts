/** Results of scans on their way to operations: which are sent, for which allocation, and until when. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { send } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { listInterfaces, result, scanId, secondsAgo } from '#monitor/scans/testing/scan-world.ts';
import {
  address,
  assignedAt,
  createPortScanStage,
  type PortScanStage,
  requestOf,
  targetOf,
} from '../testing/port-scan-stage.ts';

let stage: PortScanStage;
before(async () => {
  stage = await createPortScanStage();
});
after(() => stage[Symbol.asyncDispose]());
beforeEach(() => stage.reset());

test('NET-2.7.11: a result of a cluster that no site has waits', async () => {
  await stage.report(result(await stage.targetId(), 'common', [22]));
  await stage.world.sites.mapCluster(systemActor, 7, null);
  await stage.world.sites.mapCluster(systemActor, 8, stage.world.siteId);
  assert.deepEqual([(await stage.tick()).counts.due, stage.sent().length], [0, 0]);
  await stage.world.sites.mapCluster(systemActor, 8, null);
  await stage.world.sites.mapCluster(systemActor, 7, stage.world.siteId);
  await stage.tick();
  assert.equal(stage.sent().length, 1);
});

test('NET-2.7.9, NET-4.f: a result is delivered until its receipt is there, for the allocation of the request', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  const target = await stage.targetId();
  const body = result(target, 'full', [22, 443], { scan_id: id, scan_request_id: id, endedAgo: 20 });
  await stage.report(body);
  stage.world.operations.intercept = (_request, response, path) => {
    if (path !== '/protect/port-scans/') return false;
    send(response, 500, {});
    return true;
  };
  assert.equal((await stage.tick()).counts.failed, 1);
  await stage.startFeed();
  stage.world.operations.intercept = () => false;
  const { counts } = await stage.tick();
  assert.equal(counts.accepted, 1);
  const [delivered] = stage.sent();
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
  await stage.startFeed();
  assert.equal((await stage.tick()).counts.due, 0, 'it is delivered once');
  const state = await stage.feed.state();
  assert.ok(state!.lastSuccessAtMs && state!.lastError === null, 'NET-2.9');
});

test('NET-2.7.9: a newer scan of a sensor replaces neither a request’s undelivered result nor another profile', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  const target = await stage.targetId();
  await stage.report(result(target, 'full', [22], { scan_id: id, scan_request_id: id, endedAgo: 900 }));
  await stage.report(result(target, 'common', [22], { endedAgo: 700 }));
  const hourly = result(target, 'common', [22, 80], { endedAgo: 100 });
  const daily = result(target, 'full', [22, 80], { endedAgo: 50 });
  await stage.report(hourly);
  await stage.report(daily);
  await stage.tick();
  assert.deepEqual(
    stage
      .sent()
      .map(({ scan_id }) => scan_id)
      .sort(),
    [id, hourly.scan_id, daily.scan_id].sort(),
  );
});

test('NET-2.7.9: under a changed connection a request’s result waits until the request is confirmed again', async () => {
  const id = scanId();
  stage.world.operations.scanRequests = [requestOf(id)];
  await stage.tick();
  await stage.report(result(await stage.targetId(), 'full', [22], { scan_id: id, scan_request_id: id }));
  await stage.world.database.pool.query('update operations_connection set revision = revision + 1');
  stage.world.operations.scanRequests = [];
  assert.equal((await stage.tick()).counts.due, 0);
  stage.world.operations.scanRequests = [requestOf(id, { revision: 2 })];
  await stage.tick();
  assert.deepEqual(
    stage.sent().map(({ scan_id }) => scan_id),
    [id],
  );
});

test('NET-2.7.11: a sensor’s own scan is sent for the allocation that the address had when the scan began, and for no other', async () => {
  const { operations } = stage.world;
  const later = await stage.targetId('203.0.113.11');
  operations.targets = [targetOf(4, 1, address), targetOf(5, 2, '203.0.113.11', secondsAgo(30))];
  const early = result(later, 'common', [22], { endedAgo: 60 });
  const own = result(await stage.targetId(), 'common', [22], { endedAgo: 60 });
  await stage.report(early);
  await stage.report(own);
  const { counts } = await stage.tick();
  assert.deepEqual([counts.due, counts.no_allocation], [1, 1]);
  assert.deepEqual(
    stage.sent().map((one) => [one.scan_id, one.request_id, one.allocation_id]),
    [[own.scan_id, null, 4]],
  );
});

test('a result that operations can not match is not sent again; one of another source is', async () => {
  const own = result(await stage.targetId(), 'common', [22]);
  await stage.report(own);
  stage.world.operations.scanReceipt = () => 'source_conflict';
  await stage.tick();
  assert.deepEqual(
    (await stage.world.feeds.listHeldBack()).map((one) => [one.feed, one.outcome]),
    [['port-scans', 'source_conflict']],
  );
  stage.world.operations.scanReceipt = () => 'unmatched';
  assert.equal((await stage.tick()).counts.unmatched, 1);
  assert.equal((await stage.tick()).counts.due, 0);
});

test('NET-2.7.11: what a sensor reports of its own server under the id of another’s scan moves and opens nothing there', async () => {
  const { pool } = stage.world.database;
  const { token } = await stage.world.sensors.createToken(systemActor, stage.world.siteId);
  const names = { host_name: 'host-3', node: 'hv-3', sensor_version: '0.1.24' };
  const thief = {
    id: (await stage.world.sensors.enrol({ token, ...names }))!.sensor_id,
    siteId: stage.world.siteId,
  };
  await pool.query(
    `insert into captures (site_id, sensor_id, name, role) values ($1, $2, 'uplink0', 'uplink'), ($1, $2, 'br0', 'bridge')`,
    [stage.world.siteId, thief.id],
  );
  await listInterfaces(pool, thief.id);
  await pool.query("update inventory_vms set node = 'hv-3' where vm_id = 2");
  const stolen = (await stage.world.scans.readPlan(thief)).targets[0]!.target_id;
  const forge = (id: string, requestId: string | null) =>
    stage.world.scans.receive(
      thief,
      result(stolen, 'full', [31_337], { scan_id: id, scan_request_id: requestId, endedAgo: 900 }),
    );
  const [asked, own] = [scanId(), scanId()];
  stage.world.operations.scanRequests = [requestOf(asked)];
  await stage.tick();
  await forge(asked, asked);
  assert.deepEqual(await stage.planned(), [asked], 'the request is still to be scanned');
  const target = await stage.targetId();
  await stage.report(result(target, 'full', [22], { scan_id: asked, scan_request_id: asked, endedAgo: 20 }));
  await stage.report(result(target, 'common', [443], { scan_id: own, endedAgo: 20 }));
  await forge(own, null);
  await stage.tick();
  const found = stage
    .sent()
    .map((one) => [one.scan_id, one.allocation_id, one.services.map(({ port }) => port)]);
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

test('NET-8.5: a result of 4,096 ports is delivered as it is', async () => {
  const target = await stage.targetId();
  const ports = Array.from({ length: 4096 }, (_, n) => n + 1);
  const own = result(target, 'full', ports);
  for (const one of own.services) one.extra_info = 'x'.repeat(256);
  await stage.report(own);
  await stage.report(result(target, 'common', [22]));
  await stage.tick();
  assert.equal(stage.sent().find(({ scan_id }) => scan_id === own.scan_id)!.services.length, 4096);
});

test('NET-2.7.10: a partial scan does not take the place of a complete one that was not delivered yet', async () => {
  const target = await stage.targetId();
  const old = result(target, 'common', [22], { endedAgo: 900 });
  const complete = result(target, 'common', [22, 80], { endedAgo: 500 });
  const partial = result(target, 'common', [22], { endedAgo: 100, state: 'partial', notes: ['interrupted'] });
  for (const one of [old, complete, partial]) await stage.report(one);
  await stage.tick();
  assert.deepEqual(
    stage
      .sent()
      .map(({ scan_id }) => scan_id)
      .sort(),
    [complete.scan_id, partial.scan_id].sort(),
  );
});
