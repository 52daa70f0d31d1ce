import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { metrics } from '#contracts/sensor-api/detection.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;
let path: string;
let groupId: number;
before(async () => {
  server = await startMonitorServer();
  operator = await server.signIn('operator');
  viewer = await server.signIn('viewer');
  const { monitor, siteId, database } = server;
  const group = {
    name: 'web',
    prefixes: ['198.51.100.0/28'],
    thresholds: { inbound: { pps: '40k' }, outbound: {} },
  };
  groupId = (await monitor.protection.saveGroup(systemActor, siteId, null, group, 0))!;
  path = `/sites/${siteId}/protection/groups/${groupId}/what-if`;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const enrolled = await monitor.sensors.enrol({
    ...{ token, host_name: 'host-1', node: 'node-1', sensor_version: '0.2.0' },
  });
  await database.pool.query(
    `select ensure_fact_partition('detector_addresses', day, interval '1 day')
     from generate_series(date_trunc('day', now() - interval '2 days'), now() + interval '1 day', interval '1 day') day`,
  );
  await database.pool.query(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
     values (date_trunc('minute', now() - interval '1 hour'), $1, $2, 'eth0', '198.51.100.1', false, $3, $3, 0, 0)`,
    [siteId, enrolled!.sensor_id, metrics.map((metric) => (metric === 'pps' ? 30_000 : 0))],
  );
});
after(() => server[Symbol.asyncDispose]());

test('an operator has a group replayed, follows its progress, and finds the result later', async () => {
  const empty = await viewer.get(path);
  assert.equal(empty.status, 200);
  assert.match(empty.text, /Nothing was replayed yet/);
  assert.doesNotMatch(empty.text, /Replay the group/, 'a viewer starts nothing');
  assert.ok(
    (await viewer.get(path.replace('/what-if', ''))).text.includes(`href="${path}"`),
    'the group links to it',
  );
  const started = await operator.post(path, { 'inbound.pps': '10k' });
  assert.equal(started.status, 303);
  const waiting = (await operator.get(path)).text;
  assert.match(waiting, /Listing addresses/);
  assert.match(waiting, />Cancel</);
  assert.doesNotMatch((await viewer.get(path)).text, />Cancel</);
  const second = await operator.post(path, {});
  assert.equal(second.status, 422);
  assert.match(second.text, /A replay of the group (&quot;|")web(&quot;|") is under way/);
  await server.monitor.protection.replays.drain();
  const done = (await viewer.get(path)).text;
  assert.match(done, /Would have fired once, at 1 of 1 addresses; the present thresholds never/);
  assert.match(done, /30,000 packets\/s, 3\.00 times/);
  assert.match(done, /packets inbound: 10,000 packets\/s/);
  assert.ok(
    done.includes(`/sites/${server.siteId}/protection/addresses/198.51.100.1/what-if?inbound.pps=10k`),
    'links to the replay of the address',
  );
  const rows = JSON.parse((await viewer.get(`${path}?format=json&table=addresses`)).text).rows;
  assert.deepEqual(rows, [
    {
      address: '198.51.100.1',
      fired: 1,
      certain: 1,
      present: 0,
      lost: 0,
      added: 1,
      strongest: 3,
      minutes: 1,
    },
  ]);
});

test('a replay is cancelled by its button, and an earlier one can be shown again', async () => {
  await operator.post(path, { 'inbound.pps': '20k' });
  const [open, before] = await server.monitor.protection.listGroupReplays(server.siteId, groupId, 2);
  const cancel = () => operator.post(`${path}/${open!.id}/cancel`, {});
  assert.equal((await cancel()).headers.get('location'), `${path}?done=cancelled`);
  assert.equal((await cancel()).headers.get('location'), path, 'it has ended: nothing was cancelled');
  await server.monitor.protection.replays.drain();
  assert.match((await viewer.get(path)).text, /Cancelled by /);
  assert.match((await viewer.get(`${path}?replay=${before!.id}`)).text, /Would have fired once/);
});

test('wrong thresholds, viewers, other groups and other sites are refused', async () => {
  const refused = await operator.post(path, { 'inbound.pps': 'lots' });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /lots/);
  assert.equal((await viewer.post(path, {})).status, 403);
  const missing = path.replace(`/groups/${groupId}/`, '/groups/999/');
  assert.equal((await operator.get(missing)).status, 404);
  assert.equal((await operator.post(missing, {})).status, 404);
  assert.equal((await operator.post(`${path}/not-a-uuid/cancel`, {})).status, 422);
});
