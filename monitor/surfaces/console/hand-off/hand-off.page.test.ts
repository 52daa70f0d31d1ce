import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;
let folder: string;
let path: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-hand-off-page-'));
  await writeFile(join(folder, 'block.sh'), '#!/bin/sh\ncat > /dev/null\necho "<b>done</b> $4"\n');
  await chmod(join(folder, 'block.sh'), 0o755);
  server = await startMonitorServer({
    SVC_HAND_OFF_COMMANDS: folder,
    SVC_HAND_OFF_BGP_PEERS: '64512@127.0.0.1:1790',
  });
  [operator, viewer] = [await server.signIn('operator'), await server.signIn('viewer')];
  path = `/sites/${server.siteId}/protection/hand-off`;
});
after(async () => {
  await server[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const body = (part: Record<string, string> = {}) => ({
  revision: '0',
  name: 'Block <i>',
  kind: 'command',
  prefixes: '198.51.100.0/24',
  direction: 'inbound',
  min_pps: '20k',
  min_bps: '',
  hold_seconds: '300',
  command: 'block.sh',
  ...part,
});
const revisionOf = async () =>
  String((await server.monitor.handOff.describeSite(server.siteId)).rules[0]!.revision);

test('an operator adds a rule, rehearses it, and types its name to switch it on; a viewer only reads', async () => {
  assert.match((await viewer.get(path)).text, /No active rules: the monitor takes no action against attacks/);
  assert.equal((await viewer.get(`${path}/rules/new?kind=command`)).status, 403);
  assert.equal((await viewer.post(`${path}/rules`, body())).status, 403);
  assert.match((await operator.get(`${path}/rules/new?kind=command`)).text, /<option value="block.sh"/);
  const added = await operator.post(`${path}/rules`, body());
  const rule = added.headers.get('location')!.split('?')[0]!;
  const shown = await operator.get(rule);
  assert.match(shown.text, /Block &lt;i&gt;/);
  assert.match(shown.text, /Start dry run/);
  assert.match(shown.text, /at least 20,000 packets\/s/);
  assert.doesNotMatch((await viewer.get(rule)).text, /Start dry run|Remove rule/);
  const toOn = { revision: await revisionOf(), mode: 'on', confirm_name: 'Block <i>' };
  assert.equal((await operator.post(`${rule}/mode`, toOn)).status, 422, 'not without a dry run');
  await operator.post(`${rule}/mode`, { revision: await revisionOf(), mode: 'dry_run' });
  const untyped = { revision: await revisionOf(), mode: 'on', confirm_name: 'Block' };
  assert.equal((await operator.post(`${rule}/mode`, untyped)).status, 422);
  assert.equal((await operator.post(`${rule}/mode`, { ...toOn, csrf_token: 'x' })).status, 403);
  assert.equal((await operator.post(`${rule}/mode`, toOn)).status, 409, 'an older form');
  const typed = { ...untyped, confirm_name: 'Block <i>' };
  assert.equal((await operator.post(`${rule}/mode`, typed)).status, 303);
  assert.match((await viewer.get(path)).text, /1 active rule/);
});

test('a refused form keeps what was typed and marks each wrong field', async () => {
  const refused = await operator.post(
    `${path}/rules`,
    body({ name: '', prefixes: '0.0.0.0/0', hold_seconds: '5', command: '/bin/sh' }),
  );
  assert.equal(refused.status, 422);
  assert.match(refused.text, /0\.0\.0\.0\/0 is every address/);
  assert.match(refused.text, /The hold time is 60 to 86400 whole seconds/);
  assert.match(refused.text, /value="5"/);
  assert.equal((await operator.post(`${path}/limit`, { revision: '0', addresses_max: '0' })).status, 422);
  assert.equal((await operator.post(`${path}/limit`, { revision: '0', addresses_max: '3' })).status, 303);
  assert.match((await operator.get(path)).text, /name="addresses_max"[^>]*value="3"/);
});

test('a blackhole needs a peer of the settings, and a next hop for each family of its list', async () => {
  const form = (await operator.get(`${path}/rules/new?kind=blackhole`)).text;
  assert.match(form, /<option value="64512@127\.0\.0\.1:1790"/);
  const input = body({
    kind: 'blackhole',
    name: 'Hole',
    command: '',
    prefixes: '198.51.100.0/24 2001:db8::/64',
  });
  const refused = await operator.post(`${path}/rules`, {
    ...input,
    peer: '64512@192.0.2.1:179',
    next_hop4: '100::1',
  });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /Choose one of the peers: 64512@127\.0\.0\.1:1790/);
  assert.match(refused.text, /Write an IPv4 address/);
  assert.match(refused.text, /The list has IPv6 prefixes: give their next hop/);
  const hops = { peer: '64512@127.0.0.1:1790', next_hop4: '192.0.2.1', next_hop6: '100::1' };
  const added = await operator.post(`${path}/rules`, { ...input, ...hops });
  const page = (await viewer.get(added.headers.get('location')!)).text;
  assert.match(page, /announce a blackhole to 64512@127\.0\.0\.1:1790/);
  const { rules } = await server.monitor.handOff.describeSite(server.siteId);
  const { id, revision } = rules.find(({ name }) => name === 'Hole')!;
  await server.monitor.handOff.removeRule(systemActor, server.siteId, id, revision);
});

test('the secret of a webhook is shown once', async () => {
  const input = body({ kind: 'webhook', name: 'Pager', url: 'https://example.com/hook', command: '' });
  const added = await operator.post(`${path}/rules`, input);
  const secret = /whsec_[A-Za-z0-9+/=]+/.exec(added.text)?.[0];
  assert.ok(secret);
  const { rules } = await server.monitor.handOff.describeSite(server.siteId);
  const id = rules.find(({ name }) => name === 'Pager')!.id;
  const page = (await operator.get(`${path}/rules/${id}`)).text;
  assert.doesNotMatch(page, /whsec_/);
  assert.match(page, /https:\/\/example\.com\/hook/);
  const other = await server.monitor.sites.create(systemActor, 'Other site');
  assert.equal((await operator.get(`/sites/${other.id}/protection/hand-off/rules/${id}`)).status, 404);
});

test('the incident’s page shows what was done in its timeline, and output to operators only; an operator starts and ends it', async () => {
  const { monitor, siteId, database } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const request = { token, host_name: 'host-1', node: 'node-1', sensor_version: '0.2.0' };
  const sensor = (await monitor.sensors.authenticate((await monitor.sensors.enrol(request))!.credential))!;
  const now = Date.now();
  const flood = observation({ startedAtMs: now - 60_000, lastObservedAtMs: now });
  const upload = compressUpload(encodeUpload(createIncidentSpool()(flood)));
  await monitor.inbox.receiveUrgent(sensor, upload, 'zstd', requireIncidentsAlone);
  await monitor.handOff.worker.drain();
  // No server on node-1 has the address.
  assert.match((await viewer.get(path)).text, /waits for you: no server on the node/);
  const [waiting] = await monitor.handOff.listActions(siteId, null, 10);
  const approve = `${path}/actions/${waiting!.id}/approve`;
  assert.ok(
    !(await viewer.get(path)).text.includes(approve) && (await operator.get(path)).text.includes(approve),
  );
  assert.equal((await viewer.post(approve)).status, 403);
  assert.equal((await operator.post(approve)).status, 303);
  assert.equal((await operator.post(approve)).status, 409, 'it has started');
  await monitor.handOff.worker.drain();
  const { rows } = await database.pool.query('select id from incidents');
  const incident = `/sites/${siteId}/incidents/${rows[0].id}`;
  const page = (await operator.get(incident)).text;
  assert.match(page, /Hand-off: Block &lt;i&gt; began \(run block\.sh\)/);
  assert.match(page, /&lt;b&gt;done&lt;\/b&gt; ban/);
  assert.doesNotMatch((await viewer.get(incident)).text, /&gt;done&lt;/);
  assert.match((await viewer.get(path)).text, /1 address has actions/);
  const [action] = await monitor.handOff.listActions(siteId, null, 10);
  const end = `${path}/actions/${action!.id}/end`;
  assert.equal((await viewer.post(end)).status, 403);
  assert.equal((await operator.post(end)).status, 303);
  assert.equal((await operator.post(end)).status, 409, 'it ends already');
  await monitor.handOff.worker.drain();
  assert.match((await operator.get(incident)).text, /Hand-off: Block &lt;i&gt; ended/);
});

test('a filter: its form, what it counts and drops on the incident’s page, and the button with which an operator lets it drop', async () => {
  const { monitor, siteId, database } = server;
  const form = (await operator.get(`${path}/rules/new?kind=filter`)).text;
  assert.match(form, /Count before dropping/);
  const input = {
    ...body({ kind: 'filter', name: 'Filter', command: '' }),
    count_seconds: '',
    max_seconds: '3600',
  };
  const added = await operator.post(`${path}/rules`, input);
  const rule = added.headers.get('location')!.split('?')[0]!;
  assert.match((await viewer.get(rule)).text, /drop at the uplinks of hypervisors once an operator lets it/);
  const { rows } = await database.pool.query('select id from incidents limit 1');
  const { rows: made } = await database.pool.query(
    `with action as (
       insert into hand_off_actions (site_id, rule_id, incident_id, kind, is_dry_run, address, target_key, target, hold_seconds, attack, state,
         started_at)
       values ($1, $2, $3, 'filter', false, '198.51.100.7', 'host 198.51.100.7', '{"maxSeconds": 3600}', 300,
         '{"class": "syn_flood", "vectors": []}', 'active', svc_now()) returning id)
     insert into hand_off_incidents (action_id, incident_id) select id, $3 from action returning action_id as id`,
    [siteId, rule.split('/').at(-1), rows[0].id],
  );
  const say = (part: object) =>
    database.pool.query(
      `update incidents set measured = measured || jsonb_build_object('filter', $1::jsonb)`,
      [
        JSON.stringify({
          ...{ matched: { packets: 90, bytes: 5400 }, dropped: { packets: 0, bytes: 0 } },
          ...{ passed: { packets: 7, bytes: 420 }, current: { bps: 12e6, pps: 24_870 } },
          ...{ isDropping: false, problem: '', ...part },
        }),
      ],
    );
  const incident = `/sites/${siteId}/incidents/${rows[0].id}`;
  assert.match((await viewer.get(incident)).text, /A filter is on its way/);
  await say({});
  const counting = (await operator.get(incident)).text;
  assert.match(counting, /The filter counts: it would drop 24,870 packets\/s/);
  assert.match(counting, /Drop now/);
  await say({ problem: 'SVC_SENSOR_FILTER is off' });
  assert.match((await viewer.get(incident)).text, /The sensor says: SVC_SENSOR_FILTER is off/);
  const drop = `${path}/actions/${made[0].id}/drop`;
  assert.equal((await viewer.post(drop)).status, 403);
  assert.equal((await operator.post(drop)).status, 303);
  assert.equal((await operator.post(drop)).status, 409, 'it drops already');
  await say({ isDropping: true, dropped: { packets: 80, bytes: 4800 } });
  assert.match(
    (await viewer.get(incident)).text,
    /Dropped at the hypervisor: 24,870 packets\/s since \d\d:\d\d:\d\d UTC[\s\S]*80 packets/,
  );
  const actions = await monitor.handOff.listActions(siteId, null, 10);
  await monitor.handOff.endAction(systemActor, siteId, actions.find(({ kind }) => kind === 'filter')!.id);
});

test('the page says how the session with each BGP peer goes', async () => {
  const { pool } = server.database;
  const rows = async () => JSON.parse((await viewer.get(`${path}?format=json&table=peers`)).text).rows;
  await pool.query("update hand_off_rules set mode = 'off'");
  assert.partialDeepStrictEqual(await rows(), [{ peer: '64512@127.0.0.1:1790', session: 'unused' }]);
  await pool.query("update hand_off_rules set mode = 'on', removed_at = null where kind = 'blackhole'");
  assert.partialDeepStrictEqual(await rows(), [{ session: 'unknown' }]);
  await pool.query(
    `insert into bgp_sessions (peer, problem, routes) values ('64512@127.0.0.1:1790', 'the peer <b>closed</b>', 0)
     on conflict (peer) do update set problem = excluded.problem, told_at = svc_now()`,
  );
  assert.match((await viewer.get(path)).text, /down<\/span>[\s\S]*the peer &lt;b&gt;closed&lt;\/b&gt;/);
  await pool.query('update bgp_sessions set problem = null, routes = 7');
  assert.partialDeepStrictEqual(await rows(), [{ session: 'established', routes: 7, remark: '' }]);
  await pool.query("update hand_off_rules set mode = 'off'");
});
