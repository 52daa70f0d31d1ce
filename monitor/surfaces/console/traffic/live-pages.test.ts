import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { encodeLive, type LiveWindow } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';

let server: MonitorServer;
let operator: Visitor;
let viewer: Visitor;
let sensor: Awaited<ReturnType<MonitorServer['monitor']['sensors']['authenticate']>> & {};
before(async () => {
  lastWindow = Math.floor(Date.now() / 10_000) * 10_000 - 30_000;
  server = await startMonitorServer();
  const { monitor, siteId } = server;
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const names = { host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
  sensor = (await monitor.sensors.authenticate(
    (await monitor.sensors.enrol({ token, ...names }))!.credential,
  ))!;
  [operator, viewer] = await Promise.all([server.signIn('operator'), server.signIn('viewer')]);
});
after(() => server[Symbol.asyncDispose]());

const page = (path: string) => `/sites/${server.siteId}/${path}`;
let lastWindow: number;

function liveWindow(capture: string, role: 'uplink' | 'bridge', rxBytes: number, ago = 0): LiveWindow {
  const { totals } = captureMinute({ totals: { ipBytes: rxBytes * 2, parserDropped: 3 } });
  const hosts = [
    { address: '192.0.2.10', rxBytes, txBytes: 0, packets: 100 },
    ...(capture === 'br0' ? [{ address: '192.0.2.99', rxBytes: 125_000, txBytes: 0, packets: 2 }] : []),
  ];
  return {
    capture,
    role,
    startedAtMs: lastWindow - ago * 1000,
    observedMs: 10_000,
    totals,
    hosts,
    hostsLeftOut: 0,
  };
}

test('NET-2.5, NET-2.2.6: the live page shows each address from its strongest capture, with gaps and losses', async () => {
  const windows = [
    liveWindow('eth0', 'uplink', 1_250_000),
    liveWindow('br0', 'bridge', 1_200_000),
    liveWindow('eth0', 'uplink', 2_500_000, 30),
  ];
  const body = encodeLive({ runId: randomUUID(), sensorVersion: '0.1.0', windows });
  await server.monitor.live.receive(sensor, compressUpload(body), 'zstd');
  const { status, text, headers } = await viewer.get(page('live'));
  assert.equal(status, 200);
  assert.ok(text.length < 60_000, `${text.length} bytes of HTML`);
  assert.equal(headers.get('content-security-policy')?.includes("'unsafe"), false);
  assert.match(text, /Newest window ended .* ago, from 2 captures/);
  assert.match(text, /192\.0\.2\.99/);
  assert.match(text, /<tr><th scope="row">/, 'without scripts there is a table');
  const json = async (query: string) => JSON.parse((await viewer.get(`${page('live.json')}${query}`)).text);
  const { series, times } = await json('');
  assert.deepEqual(series[0].values, [2_000_000, 1_100_000], 'the uplink and the bridge are not added');
  assert.equal(series[1].role, 'out');
  assert.deepEqual(times, [lastWindow - 30_000, lastWindow], 'the windows between are missing, not zero');
  const told = (one: { reasons: { text: string }[] }) => one.reasons.map((reason) => reason.text);
  assert.deepEqual(told(await json('')), ['before the first sensor was enrolled', 'window on its way']);
  assert.deepEqual(told(await json('?chart=uplink')), told(await json('')));
  assert.deepEqual((await json('?address=192.0.2.99')).series[0].values, [100_000]);
  const linesOf = async (chart: string) =>
    (await json(`?chart=${chart}`)).series.map((one: { label: string }) => one.label);
  assert.deepEqual(await linesOf('uplink'), ['eth0 of node-1']);
  assert.deepEqual(await linesOf('bridge'), ['br0 of node-1'], 'separate charts: both have the same traffic');
  const file = await viewer.get(page('live?format=csv&table=windows'));
  assert.match(
    file.text,
    /^time,in_bps,out_bps,packets_per_second,addresses,kernel_dropped,parser_dropped\r\n/,
  );
  assert.match(file.text, /,1100000,0,10.2,2,0,6\r\n$/);
});

test('operators add probes, see results and remove them; others can only read', async () => {
  assert.match((await viewer.get(page('availability'))).text, /No probes yet/);
  const form = {
    name: 'Gateway',
    kind: 'tcp',
    target: '192.0.2.1',
    port: '443',
    interval: '10',
    timeout: '1000',
  };
  const refused = await operator.post(page('availability'), { ...form, port: '' });
  assert.equal(refused.status, 422);
  assert.match(refused.text, /Enter the port/);
  assert.match(refused.text, /value="192\.0\.2\.1"/, 'the input is kept');
  assert.equal((await viewer.post(page('availability'), form)).status, 403);
  const added = await operator.post(page('availability'), form);
  assert.equal(added.status, 303);
  const place = added.headers.get('location')!;
  const id = Number(place.split('/').at(-1));
  const minute = Math.floor(Date.now() / 60_000) * 60 - 120;
  const result = { probe: id, firstSentMs: 1, sent: 6, failure: null };
  const upload = {
    ...createSpool().upload([captureMinute({ minute })]),
    probes: [
      { ...result, minute, lost: 0, rtt: { minUs: 800, medianUs: 1500, maxUs: 2500 } },
      { ...result, minute: minute - 60, lost: 6, rtt: null, failure: 'timeout' as const },
    ],
  };
  await server.monitor.inbox.receive(sensor, compressUpload(encodeUpload(upload)), 'zstd');
  await server.monitor.inbox.drain();
  const list = await viewer.get(`${page('availability')}?range=1h`);
  assert.match(list.text, /The probe is answered\./);
  for (const part of ['50.0 %', '1.50 ms', '192.0.2.1:443']) assert.ok(list.text.includes(part), part);
  assert.ok(!list.text.includes('Add a probe'), 'viewers see no forms');
  const csv = await viewer.get(`${page('availability')}?range=1h&format=csv&table=probes`);
  assert.match(csv.text, /Gateway,up,tcp,192\.0\.2\.1:443,0\.5,0\.5,1500,2,/);
  const one = await operator.get(`${place}?range=1h`);
  for (const part of ['Answered in the newest minute', 'node-1', 'Delete probe'])
    assert.ok(one.text.includes(part), part);
  const paused = await operator.post(place, { name: 'Gate', interval: '30', timeout: '500' });
  assert.equal(paused.status, 303);
  assert.match((await viewer.get(place)).text, /Paused: no sensor measures it/);
  assert.equal((await operator.post(`${place}/delete`, { confirm_name: 'Gateway' })).status, 422);
  assert.equal((await operator.post(`${place}/delete`, { confirm_name: 'Gate' })).status, 303);
  assert.equal((await viewer.get(place)).status, 404);
});

test('alerts are acknowledged and muted, channels show their secret once, and others can only read', async () => {
  const { database, monitor } = server;
  assert.match((await viewer.get('/alerts')).text, /All clear: no open alerts/);
  await database.pool.query(`insert into alert_episodes (site_id, kind, subject_key, subject_name, details)
    values (${server.siteId}, 'sensor_silent', 'sensor:1', '<b>node</b>', '{"silent_seconds": 400}')`);
  const [episode] = await monitor.alerts.listOpen(null, 1);
  const open = await operator.get('/alerts');
  assert.ok(open.text.includes('>Handle<'));
  assert.match(open.text, /1 alert is open/);
  assert.ok(open.text.includes('no contact for 6 min') && !open.text.includes('<b>node'));
  const one = await operator.get(`/alerts/${episode!.id}`);
  for (const part of ['Open for', 'Acknowledge', 'Mute', '/sensors/1'])
    assert.ok(one.text.includes(part), part);
  assert.ok(!(await viewer.get(`/alerts/${episode!.id}`)).text.includes('/mute'), 'viewers see no forms');
  assert.equal((await viewer.get('/alerts/999')).status, 404);
  assert.equal((await viewer.post(`/alerts/${episode!.id}/acknowledge`, {})).status, 403);
  assert.equal((await operator.post(`/alerts/${episode!.id}/acknowledge`, { note: 'looking' })).status, 303);
  assert.equal((await operator.post(`/alerts/${episode!.id}/mute`, { hours: '8' })).status, 303);
  assert.equal((await operator.post('/alerts/999/mute', { hours: '8' })).status, 404);
  const taken = (await viewer.get('/alerts')).text;
  for (const part of ['acknowledged by operator', 'looking', 'muted for 7 h'])
    assert.ok(taken.includes(part), part);
  assert.ok(!taken.includes('>Handle<'));

  const hook = { kind: 'webhook', name: 'Pager', setting_url: 'https://alerts.example.net/hook' };
  const inside = await operator.post('/alerts/channels', { ...hook, setting_url: 'https://10.0.0.1/' });
  assert.deepEqual([inside.status, /public internet/.test(inside.text)], [422, true]);
  const made = await operator.post('/alerts/channels', hook);
  const [secret] = /whsec_[\w+/=]+/.exec(made.text)!;
  assert.ok(!(await operator.get('/alerts')).text.includes(secret), 'shown once');
  assert.equal((await viewer.post('/alerts/channels', hook)).status, 403);
  const mail = await operator.post('/alerts/channels', {
    kind: 'email',
    name: 'Night',
    setting_recipients: 'a@example.net',
  });
  assert.equal(mail.status, 303);
  assert.match((await operator.get('/alerts/channels/new')).text, /No mail server is configured/);
  const [night, pager] = await monitor.alerts.listChannels();
  assert.equal((await viewer.post(`/alerts/channels/${pager!.id}/delete`)).status, 403);
  const token = 'xoxb-0123456789-abcdefghijklmnop';
  const chat = { kind: 'slack', name: 'Chat', setting_token: token, setting_channel: '#ops' };
  const refused = await operator.post('/alerts/channels', {
    ...chat,
    critical_only: 'on',
    quiet_from: '22:00',
  });
  assert.equal(refused.status, 422);
  for (const part of ['such as C0123456789', 'value="#ops"', 'value="22:00"', 'value="on" checked'])
    assert.ok(refused.text.includes(part), part);
  assert.ok(!refused.text.includes(token), 'a secret that was typed is not written into a page');
  assert.equal(
    (await operator.post('/alerts/channels', { ...chat, setting_channel: 'C0123456789' })).status,
    303,
  );
  const { id } = (await monitor.alerts.listChannels()).find(({ name }) => name === 'Chat')!;
  const place = `/alerts/channels/${id}`;
  const edit = (await operator.get(place)).text;
  assert.ok(
    edit.includes('value="C0123456789"') && edit.includes('Leave empty to keep') && !edit.includes(token),
  );
  const changed = { name: 'Chat of the night', setting_channel: 'C0123456789', kind_capture_dead: 'on' };
  assert.equal((await operator.post(place, changed)).status, 303);
  assert.match((await operator.get('/alerts')).text, /Chat of the night[\s\S]*one kind of alert/);
  assert.deepEqual(
    [(await viewer.get(place)).status, (await viewer.post(place, changed)).status],
    [403, 403],
  );
  assert.equal((await viewer.get('/alerts/channels/new')).status, 403);
  assert.equal((await operator.get('/alerts/channels/999')).status, 404);
  assert.equal((await operator.get('/alerts/channels/new?kind=pigeon')).status, 404);
  for (const [name, status] of [
    ['test', 303],
    ['disable', 303],
    ['enable', 303],
    ['delete', 303],
    ['delete', 404],
  ] as const)
    assert.equal((await operator.post(`/alerts/channels/${night!.id}/${name}`)).status, status, name);
});

test('NET-8.7: the live page works while the store accepts nothing, and shows the reason', async () => {
  const { live } = server.monitor;
  const { findProblem } = live;
  live.findProblem = async () => 'The live store does not answer.';
  const { status, text } = await viewer.get(page('live'));
  live.findProblem = findProblem;
  assert.equal(status, 200);
  assert.match(text, /The live store does not answer\./);
});
