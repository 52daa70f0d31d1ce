import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;
let path: string;
before(async () => {
  server = await startMonitorServer();
  [operator, viewer] = [await server.signIn('operator'), await server.signIn('viewer')];
  path = `/sites/${server.siteId}/protection`;
  const { monitor, database, siteId } = server;
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  await database.pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     select n, 1, n, 7, '198.51.100.0'::inet + n, '2026-01-01T00:00:00Z', true from generate_series(1, 9) n`,
  );
  await database.pool.query(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
     select 7, n, 'node-1', 'web-' || n, 'running', '2026-01-01' from generate_series(1, 9) n`,
  );
});
after(() => server[Symbol.asyncDispose]());

/** The version in the form that posts there. */
function revisionIn(text: string, action: string): string {
  const form = text.split('<form').find((part) => part.includes(`action="${action}"`));
  assert.ok(form, `no form to ${action}`);
  return /name="revision" value="(\d+)"/.exec(form)![1]!;
}
const rowsOf = async (page: string, table: string) =>
  JSON.parse((await viewer.get(`${page}?format=json&table=${table}`)).text).rows;

test('an operator sets thresholds of a site, a group, a server and an address; pages say which level each value is from', async () => {
  const { text } = await operator.get(path);
  const saved = await operator.post(`${path}/thresholds`, {
    revision: revisionIn(text, `${path}/thresholds`),
    'inbound.pps': '40k',
    'outbound.bps': 'off',
  });
  assert.equal(saved.headers.get('location'), `${path}?done=saved`);
  const group = await operator.post(`${path}/groups`, {
    revision: '0',
    name: 'Web <b>',
    prefixes: '198.51.100.0/29\n2001:db8::/48',
    'inbound.syn_pps': '20k',
  });
  assert.match(group.headers.get('location')!, /\/groups\/\d+\?done=saved$/);
  const serverPage = `${path}/servers/7/5`;
  await operator.post(serverPage, { revision: '0', 'inbound.udp_bps': '1.5G' });
  const address = `${path}/addresses/198.51.100.5`;
  await operator.post(address, { revision: '0', 'inbound.icmp_pps': '77' });
  const found = await rowsOf(address, 'thresholds');
  const of = (metric: string) => {
    const row = found.find((one: { metric: string }) => one.metric === metric);
    return [row.inbound, row.inbound_level, row.outbound, row.outbound_level];
  };
  assert.deepEqual(of('pps'), [40_000, 'site', 80_000, 'default']);
  assert.deepEqual(of('bps'), [900e6, 'default', null, 'site']);
  assert.deepEqual(of('syn_pps'), [20_000, 'group', 3000, 'default']);
  assert.deepEqual(of('udp_bps'), [1.5e9, 'server', null, 'default']);
  assert.deepEqual(of('icmp_pps'), [77, 'address', null, 'default']);
  const shown = await viewer.get(address);
  assert.match(shown.text, /Protected, as an address of web-5/);
  assert.match(shown.text, /Web &lt;b&gt;/);
  assert.doesNotMatch(shown.text, /Web <b>/);
  assert.deepEqual(
    (await rowsOf(path, 'groups')).map((row: { name: string; thresholds_set: number }) => [
      row.name,
      row.thresholds_set,
    ]),
    [['Web <b>', 1]],
  );
  assert.deepEqual(
    (await rowsOf(path, 'servers')).map((row: { subject: string; kind: string }) => [row.subject, row.kind]),
    [
      ['web-5', 'server'],
      ['198.51.100.5', 'address'],
    ],
  );
  assert.match((await viewer.get('/audit')).text, /inbound udp_bps/);
});

test('a refused form keeps what was typed, names the field, and saves nothing', async () => {
  const { text } = await operator.get(path);
  const revision = revisionIn(text, `${path}/thresholds`);
  const refused = await operator.post(`${path}/thresholds`, {
    revision,
    'inbound.pps': '33k',
    'inbound.bps': 'lots',
  });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /value="33k"/);
  assert.match(refused.text, /value="lots"[^>]*aria-invalid="true"|aria-invalid="true"[^>]*value="lots"/);
  assert.match(refused.text, /Write a number such as 20000/);
  const cidrs = await operator.post(`${path}/additional-cidrs`, { revision, additional_cidrs: '10.0.0.1/8' });
  assert.equal(cidrs.status, 422);
  assert.match(cidrs.text, /host bits are set: 10\.0\.0\.0\/8\?/);
  const group = await operator.post(`${path}/groups`, { revision: '0', name: 'Empty', prefixes: ' ' });
  assert.equal(group.status, 422);
  assert.match(group.text, /A group needs at least one prefix/);
  assert.equal(revisionIn((await operator.get(path)).text, `${path}/thresholds`), revision);
  assert.equal((await operator.get(`${path}/address?address=nonsense`)).status, 422);
});

test('a form multiplies every threshold that has a rate, typed or shown in grey, and leaves off what is off', async () => {
  const { text } = await operator.get(`${path}/groups/new`);
  const shown = Object.fromEntries(
    [...text.matchAll(/name="(shown\.[^"]+)" value="([^"]*)"/g)].map(([, name, value]) => [name!, value!]),
  );
  assert.equal(shown['shown.inbound.syn_pps'], '10k');
  assert.equal(shown['shown.outbound.udp_pps'], 'off');
  const group = { revision: '0', name: 'Larger', prefixes: '203.0.113.0/24', ...shown };
  const asked = { ...group, 'inbound.bps': '100M', 'inbound.udp_pps': 'off' };
  for (const multiply of ['0', '-1', '1e9', 'twice']) {
    const refused = await operator.post(`${path}/groups`, { ...asked, multiply });
    assert.ok(refused.status >= 400, multiply);
  }
  const saved = await operator.post(`${path}/groups`, { ...asked, multiply: '1.5' });
  const page = saved.headers.get('location')!.split('?')[0]!;
  const rows = (await rowsOf(page, 'thresholds')) as Record<string, number | string | null>[];
  const of = (metric: string) => rows.find((row) => row.metric === metric)!;
  assert.deepEqual(
    ['bps', 'syn_pps', 'udp_pps'].map((metric) => of(metric).inbound),
    [150e6, 15_000, null],
  );
  assert.deepEqual([of('udp_pps').outbound, of('udp_pps').outbound_level], [null, 'default']);
  const revision = revisionIn((await operator.get(page)).text, `${page}/delete`);
  const removed = { revision, confirm_name: 'Larger' };
  assert.equal((await operator.post(`${page}/delete`, removed)).status, 303);
});

test('a form that was opened before another operator’s change is refused with 409, keeps its texts, and saves nothing', async () => {
  const action = `${path}/additional-cidrs`;
  const revision = revisionIn((await operator.get(path)).text, action);
  await operator.post(action, { revision, additional_cidrs: '192.0.2.0/24' });
  const late = await operator.post(action, { revision, additional_cidrs: '203.0.113.0/24' });
  assert.equal(late.status, 409);
  assert.match(
    late.text,
    /operator@monitor.example changed them after you opened the page|operator changed them/,
  );
  assert.match(late.text, /203\.0\.113\.0\/24/);
  const again = revisionIn(late.text, action);
  assert.equal((await operator.post(action, { revision: again, additional_cidrs: '' })).status, 303);
});

test('viewers read every page of protection settings, and may neither see nor send a form', async () => {
  const [group] = (await server.monitor.protection.describeSite(server.siteId, [])).settings.groups;
  for (const page of [
    path,
    `${path}/groups/${group!.id}`,
    `${path}/addresses/198.51.100.5`,
    `${path}/servers/7/5`,
  ]) {
    const { status, text } = await viewer.get(page);
    assert.equal(status, 200, page);
    assert.doesNotMatch(text, /name="revision"/, page);
  }
  for (const action of [
    `${path}/thresholds`,
    `${path}/additional-cidrs`,
    `${path}/groups`,
    `${path}/groups/${group!.id}`,
    `${path}/groups/${group!.id}/delete`,
    `${path}/addresses/198.51.100.5`,
    `${path}/servers/7/5`,
  ]) {
    assert.equal((await viewer.post(action, { revision: '0' })).status, 403, action);
    assert.equal((await operator.post(action, { revision: '0', csrf_token: 'x' })).status, 403, action);
  }
});

test('an operator starts and stops a drill; viewers see it, with what the thresholds make of it', async () => {
  const page = `${path}/addresses/198.51.100.7`;
  const order = { class: 'syn_flood', direction: 'inbound', pps: '50k', seconds: '60' };
  assert.equal((await viewer.post(`${page}/drills`, order)).status, 403);
  const refused = await operator.post(`${page}/drills`, { ...order, pps: '50', seconds: '601' });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /A drill lasts 1 to 600 whole seconds/);
  assert.equal((await operator.post(`${page}/drills`, order)).status, 303);
  const [drill] = await rowsOf(page, 'drills');
  assert.deepEqual([drill.state, drill.class, drill.pps], ['waiting', 'inbound syn_flood', 50_000]);
  assert.equal(drill.mails_customer, false, 'not asked for');
  assert.match(drill.expected, /times TCP openings: found within 3 s/);
  const { text } = await operator.get(path);
  const stop = /action="([^"]+\/drills\/[^"]+\/stop)"/.exec(text)![1]!;
  assert.doesNotMatch((await viewer.get(path)).text, /\/stop"/);
  assert.equal((await viewer.post(stop)).status, 403);
  const stopped = await operator.post(stop);
  assert.deepEqual([stopped.status, stopped.headers.get('location')], [303, `${page}?done=stopped#drills`]);
  const again = await operator.post(stop);
  assert.equal(again.headers.get('location'), `${page}#drills`, 'it has ended: nothing was stopped');
  const mailed = { ...order, mails_customer: 'on' };
  assert.equal((await operator.post(`${page}/drills`, mailed)).status, 303);
  const asked = (await rowsOf(page, 'drills')).find((one: { state: string }) => one.state === 'waiting');
  assert.equal(asked.mails_customer, true);
  assert.match((await viewer.get(page)).text, /customer is mailed/);
  await operator.post(
    `${page}/drills/${(await server.monitor.protection.listDrills(server.siteId, '198.51.100.7', 1))[0]!.id}/stop`,
  );
  assert.equal((await rowsOf(path, 'drills'))[0].state, 'stopped');
  assert.equal((await operator.post(`${path}/addresses/203.0.113.9/drills`, order)).status, 422);
});

test('what-if and learn answer on a page of their own, save nothing, and apply by the form of the address', async () => {
  const { database, monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const enrolment = { token, host_name: 'host-a', node: 'node-1', sensor_version: '0.1.0' };
  const { sensor_id: sensorId } = (await monitor.sensors.enrol(enrolment))!;
  await database.pool.query(
    `select ensure_fact_partition('detector_addresses', day, interval '1 day')
     from generate_series(date_trunc('day', now() - interval '3 days'), now() + interval '1 day', interval '1 day') day`,
  );
  await database.pool.query(
    `insert into detector_addresses (minute, site_id, sensor_id, capture, address, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets)
     select date_trunc('minute', now()) - n * interval '1 minute', $1, $2, 'br0', '198.51.100.8', false,
       array[case when n in (100, 101, 900) then 30000 else 900 end, 0, 0, 0, 0, 0, 0, 0, 0, 0],
       array[case when n in (100, 101, 900) then 29000 else 500 end, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0, 0
     from generate_series(1, 2000) n`,
    [siteId, sensorId],
  );
  await database.pool.query(
    `insert into detector_epochs (sensor_id, id, since, prefixes) values
      ($1, gen_random_uuid(), now() - interval '2 days', array['203.0.113.0/24']::inet[]),
      ($1, gen_random_uuid(), now() - interval '1 day', array['198.51.100.8']::inet[])`,
    [sensorId],
  );
  const page = `${path}/addresses/198.51.100.8`;
  assert.match(
    (await viewer.get(page)).text,
    /host-a<\/a>, its protected set and thresholds unchanged since/,
  );
  assert.match((await viewer.get(`${path}/addresses/203.0.113.9`)).text, /no sensor has said so yet/);
  const asked = `${page}/what-if?inbound.pps=10k`;
  const answer = await operator.get(asked);
  assert.match(
    answer.text,
    /Would have fired 2 times; the present thresholds never\. Compared: 2 new\. From 2,000 minutes/,
  );
  const rows = JSON.parse((await viewer.get(`${asked}&format=json&table=findings`)).text).rows;
  assert.deepEqual(
    rows.map((row: { outcome: string; certainty: string; metric: string; ratio: number }) => [
      ...[row.outcome, row.certainty, row.metric, row.ratio],
    ]),
    [
      ['new', 'certain', 'inbound pps', 3],
      ['new', 'certain', 'inbound pps', 3],
    ],
  );
  assert.match(answer.text, /2,000 of the minutes were counted by the rule of before/);
  const columns =
    'site_id, sensor_id, capture, is_outbound, one_second, ten_seconds, attack_bytes, attack_packets';
  await database.pool.query(
    `insert into detector_addresses (address, minute, ${columns})
     select '198.51.100.9', minute, ${columns} from detector_addresses where address = '198.51.100.8' limit 1`,
  );
  const ofOne = (await viewer.get(`${path}/addresses/198.51.100.9/what-if`)).text;
  assert.match(ofOne, /From 1 minute with traffic since/);
  assert.match(ofOne, /1 of the minutes was counted by the rule of before/);
  assert.doesNotMatch((await viewer.get(asked)).text, /Use these thresholds/);
  const wrong = await operator.get(`${page}/what-if?inbound.pps=lots`);
  assert.equal(wrong.status, 422);
  assert.match(wrong.text, /Write a number such as 20000/);
  const learned = await operator.get(`${page}/what-if?learn=1`);
  assert.match(learned.text, /Apply proposals/);
  assert.deepEqual(await rowsOf(page, 'thresholds').then((all) => all[0].inbound_level), 'site');
  // The button sends what the address sets, with the proposals on top, to the address's own form.
  const form = learned.text.split('<form').find((part) => part.includes('Apply proposals'))!;
  const fields = [...form.matchAll(/name="([a-z_.]+)" value="([^"]*)"/g)].map(([, name, value]) => [
    name!,
    value!,
  ]);
  const { csrf_token: _, ...sent } = Object.fromEntries(fields) as Record<string, string>;
  assert.equal(sent['inbound.pps'], '60k');
  assert.equal((await viewer.post(page, sent)).status, 403);
  assert.equal((await operator.post(page, sent)).status, 303);
  const [pps] = await rowsOf(page, 'thresholds');
  assert.deepEqual([pps.inbound, pps.inbound_level], [60_000, 'address']);
});

test('a group is removed only by its name; addresses and servers of other sites are not found', async () => {
  const [group] = (await server.monitor.protection.describeSite(server.siteId, [])).settings.groups;
  const action = `${path}/groups/${group!.id}/delete`;
  const revision = String(group!.revision);
  assert.equal((await operator.post(action, { revision, confirm_name: 'other' })).status, 422);
  assert.equal((await operator.post(action, { revision, confirm_name: group!.name })).status, 303);
  assert.equal((await viewer.get(`${path}/groups/${group!.id}`)).status, 404);
  assert.equal((await viewer.get(`${path}/servers/8/5`)).status, 404);
  assert.equal((await viewer.get(`${path}/addresses/nonsense`)).status, 404);
  assert.match((await viewer.get(`${path}/addresses/203.0.113.9`)).text, /Not protected/);
});
