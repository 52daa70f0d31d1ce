/** The Traffic page's filters, ranges and reasons, on delivered minutes. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type DeliveredMinute, deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

let world: World;
let token: string;
before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_telemetry_ingest']);
});
after(() => world[Symbol.asyncDispose]());

const minuteMs = 60_000;
/** One moment for the whole file. */
const startedMs = worldMinuteMs;
const ago = (minutes: number) => startedMs - minutes * minuteMs;

async function createReader(name: string) {
  const { email, tenant } = await world.createCustomer(name);
  const { serverId } = await world.deploy(tenant, `${name.toLowerCase()}-1`);
  await world.backdate(serverId, '5 days');
  const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
  const cookie = await world.signIn(email);
  const path = `/client/servers/${serverId}`;
  const get = (tail: string) =>
    fetch(`${world.url}${path}${tail}`, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' });
  const page = async (tail: string) => (await get(tail)).text();
  const json = async (tail: string) => (await get(tail)).json() as Promise<Record<string, never>>;
  return { serverId, path, get, page, json, first: first!, second: second! };
}

const application = (name: string, port: number, inbound: number, outbound: number) => ({
  ...{ name, transport: 'tcp', server_port: port, inbound_bytes: inbound, outbound_bytes: outbound },
});

/** 1,200 bytes in and 600 out, of which applications are a part. */
const minute = (...applications: DeliveredMinute['applications'] & object[]): DeliveredMinute => ({
  ...{ in: 1_200, out: 600, coverage: 1, applications },
});

interface Drawn {
  times: number[];
  series: { label: string; values: (number | null)[] }[];
}

test('applications obey the range, and are filtered by name, port and direction', async () => {
  const reader = await createReader('Ranged');
  await deliverMinutes(world, token, reader.first, [
    [ago(100), minute(application('old.example', 443, 90, 10))],
    [ago(20), minute(application('new.example', 443, 300, 100), application('other.example', 80, 30, 10))],
  ]);
  const names = async (query: string) => {
    const file = await reader.json(`/traffic?${query}&by=application&format=json&table=application`);
    const { rows } = file as unknown as { rows: { application: string }[] };
    return rows.map(({ application }) => application).filter((name) => name !== 'Unclassified');
  };
  assert.deepEqual(await names('range=1h'), ['new.example', 'other.example']);
  assert.deepEqual(await names('range=6h&q=port:443'), ['new.example', 'old.example']);
  assert.deepEqual(await names('range=6h&q=port:tcp/80'), ['other.example']);
  assert.deepEqual(await names('range=6h&q=-app:NEW.example'), ['old.example', 'other.example']);
  assert.deepEqual(await names('range=6h&q=transport:udp'), []);
  const page = await reader.page('/traffic?range=1h');
  assert.match(page, /new\.example used the most: 300 B in, 100 B out\./);
  assert.match(page, /href="[^"]*q=app%3Anew\.example[^"]*"/);
  assert.doesNotMatch(page, /old\.example/);
});

test('the applications say how much of all traffic they are, where that is not all of it', async () => {
  const reader = await createReader('Parts');
  await deliverMinutes(world, token, reader.first, [
    [ago(80), minute(application('all.example', 443, 1_200, 600))],
    [ago(20), minute(application('some.example', 443, 300, 60))],
  ]);
  const rest = async (query: string) => {
    const answer = await reader.json(`/traffic?${query}&format=json&table=application`);
    const { rows } = answer as unknown as { rows: Record<string, unknown>[] };
    const row = rows.find(({ application }) => application === 'Unclassified');
    return row && [row.inbound_bytes, row.outbound_bytes, row.share];
  };
  assert.deepEqual(await rest('range=1h'), [900, 540, 0.8]);
  assert.deepEqual(await rest('range=6h'), [900, 540, 0.4]);
  assert.equal(await rest('range=1h&q=port:443'), undefined);
});

test('the chart has a line for each application, and all lines together are the traffic of the server', async () => {
  const reader = await createReader('Lines');
  await deliverMinutes(world, token, reader.first, [
    [ago(9), minute(application('a.example', 443, 300, 150))],
    [ago(8), minute(application('a.example', 443, 0, 0), application('b.example', 53, 75, 75))],
    [ago(6), minute()],
  ]);
  const draw = async (query: string) =>
    (await reader.json(`/traffic/chart.json?range=15m&${query}`)) as unknown as Drawn;
  const { times, series } = await draw('by=app');
  assert.deepEqual(times, [ago(9), ago(8), ago(6)]);
  const rate = (bytes: number) => (bytes * 8) / 60;
  assert.deepEqual(
    series.map(({ label, values }) => [label, values]),
    [
      ['a.example', [rate(450), 0, 0]],
      ['b.example', [0, rate(150), 0]],
      ['Unclassified', [1_350, 1_650, 1_800].map(rate)],
    ],
  );
  const { series: filtered } = await draw('q=app:a.example');
  assert.deepEqual(
    filtered.map(({ label, values }) => [label, values]),
    [
      ['Out', [rate(150), 0, 0]],
      ['In', [rate(300), 0, 0]],
    ],
  );
  const { series: one } = await draw('q=direction:out');
  assert.deepEqual(
    one.map(({ label, values }) => [label, values]),
    [['Out', [rate(600), rate(600), rate(600)]]],
  );
});

test('NET-2.4.4: over a range of days applications are those of the last 24 hours, and the page says so', async () => {
  const reader = await createReader('Longer');
  await deliverMinutes(world, token, reader.first, [
    [ago(26 * 60), minute(application('yesterday.example', 443, 90, 10))],
    [ago(30), minute(application('today.example', 443, 30, 10), application('scanner.example', 22, 900, 0))],
  ]);
  const page = await reader.page('/traffic?range=7d');
  assert.match(page, /Applications are kept no longer: what is of them begins at/);
  assert.match(page, /today\.example/);
  assert.doesNotMatch(page, /yesterday\.example|scanner\.example/);
  assert.doesNotMatch(await reader.page('/traffic?range=1h'), /kept no longer/);
});

test('all servers of a person are one view: by server, filtered by server, and with the numbers of each server’s page', async () => {
  const { email, tenant, owner } = await world.createCustomer('Fleet');
  const other = await createReader('Elsewhere');
  const ids: number[] = [];
  for (const name of ['alpha', 'beta', 'secluded']) {
    const { serverId } = await world.deploy(tenant, name);
    await world.backdate(serverId, '2 days');
    const [of] = await world.addresses.listAllocationsOfServers([serverId]);
    const bytes = { alpha: 6_000, beta: 3_000, secluded: 90_000 }[name]!;
    await deliverMinutes(world, token, of!, [
      [ago(90), { in: bytes, out: 0 }],
      [ago(20), { in: bytes, out: bytes / 2, applications: [application('a.example', 443, 300, 100)] }],
      [ago(10), { in: bytes, out: 0 }],
    ]);
    ids.push(serverId);
  }
  await deliverMinutes(world, token, other.first, [[ago(9), minute(application('else.example', 443, 9, 9))]]);
  const actor = (await world.accounts.customerActorOf(owner.id))!;
  const settings = await world.protectSettings.find(actor, { serverId: ids[2]!, tenantId: tenant.id });
  await world.protectSettings.change(actor, ids[2]!, { ...settings, viewsOn: false });
  const cookie = await world.signIn(email);
  const get = async (path: string) =>
    (await fetch(`${world.url}/client/${path}`, { headers: { cookie, accept: 'text/html' } })).text();
  const servers = async (query: string) =>
    (
      JSON.parse(await get(`traffic/?${query}&by=server&format=json&table=server`)) as {
        rows: Record<string, unknown>[];
      }
    ).rows.map((row) => [row.server, row.inbound_bytes, row.outbound_bytes, row.previous_bytes]);
  assert.deepEqual(await servers('range=1h'), [
    ['alpha', 12_000, 3_000, 6_000],
    ['beta', 6_000, 1_500, 3_000],
  ]);
  assert.deepEqual(await servers('range=1h&q=-server:ALPHA'), [['beta', 6_000, 1_500, 3_000]]);
  assert.deepEqual(await servers('range=1h&q=direction:out'), [
    ['alpha', 0, 3_000, 0],
    ['beta', 0, 1_500, 0],
  ]);
  assert.deepEqual(
    (await servers('range=1h&q=app:a.example')).map((row) => row.slice(0, 3)),
    [
      ['alpha', 300, 100],
      ['beta', 300, 100],
    ],
  );
  assert.deepEqual(await servers(`range=1h&q=server:elsewhere-1`), []);
  const page = await get('traffic/?range=1h');
  assert.match(
    page,
    /alpha used the most: 12\.0 kB in, 3\.00 kB out\. 2 of 3 servers\. 1 with protection views off/,
  );
  assert.match(page, /a\.example/);
  assert.doesNotMatch(page, /else\.example|elsewhere|secluded/);
  const { series } = JSON.parse(await get('traffic/chart.json?range=1h')) as Drawn;
  const own = JSON.parse(await get(`servers/${ids[0]}/traffic/chart.json?range=1h`)) as Drawn;
  assert.equal(series[0]!.label, 'alpha');
  assert.deepEqual(
    series[0]!.values,
    own.series[0]!.values.map((value, index) => value! + own.series[1]!.values[index]!),
  );
  assert.match(
    await get('traffic/?range=1h&by=server&format=csv&table=server'),
    /^server,inbound_bytes,outbound_bytes,.*\r\nalpha,12000,3000,/,
  );
});

test('a filter that can not be read is named, and the others count', async () => {
  const reader = await createReader('Faulty');
  await deliverMinutes(world, token, reader.first, [[ago(5), minute(application('a.example', 443, 9, 9))]]);
  const page = await reader.page('/traffic?q=app:a.example+port:abc+nonsense+direction:up');
  for (const said of [
    'abc is no port',
    'Write what it is, such as app:nonsense',
    'up is no direction. Use in, out.',
  ])
    assert.ok(page.includes(said), said);
  assert.match(page, /Remove the filter app a\.example/);
  const hostile = await reader.page(`/traffic?q=${encodeURIComponent('app:"<script>x</script>"')}`);
  assert.doesNotMatch(hostile, /<script>x/);
});

test('the former Bandwidth tab leads to the usage below the Traffic tab', async () => {
  const reader = await createReader('Moved');
  for (const [tail, to] of [
    ['/bandwidth', '/traffic/usage'],
    ['/bandwidth?by=month', '/traffic/usage?use=month'],
    ['/protect?range=1h', '/traffic?range=1h'],
  ]) {
    const answer = await reader.get(tail!);
    assert.equal(answer.status, 303, tail);
    assert.equal(answer.headers.get('location'), `${reader.path}${to}`);
  }
});

test('a run of minutes without an observation is one row with its reason, and the present minute is in progress', async () => {
  const reader = await createReader('Runs');
  const down = { in: null, out: null, coverage: 0, reason: 'sensor_down' } as const;
  await deliverMinutes(world, token, reader.first, [
    [ago(14), minute()],
    ...[13, 12, 11].map((at) => [ago(at), down] as const),
    [ago(5), minute()],
  ]);
  const text = (await reader.page('/traffic/minutes?range=1h'))
    .replace(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');
  assert.match(text, /\d\d:\d\d to \d\d:\d\d 3 minutes sensor not running/);
  assert.match(text, /\d\d:\d\d to \d\d:\d\d 5 minutes no observation/);
  assert.match(text, /1 minute in progress/);
});

test('the explorer without a server says how to get one, and without traffic blames no filter that is not there', async () => {
  const { email, tenant } = await world.createCustomer('Newcomer');
  const cookie = await world.signIn(email);
  const page = async (query = '') => {
    const headers = { cookie, accept: 'text/html' };
    return (await fetch(`${world.url}/client/traffic/${query}`, { headers })).text();
  };
  const before = await page();
  assert.match(before, /No servers yet<\/p>[\s\S]*href="\/client\/servers\/new"/);
  assert.doesNotMatch(before, /passes the filters|Remove a filter/);
  const file = await fetch(`${world.url}/client/traffic/?table=server&format=json`, { headers: { cookie } });
  const empty = { table: 'server', is_complete: true, rows: [] };
  assert.deepEqual([file.status, await file.json()], [200, empty], 'the file of no servers has no rows');
  await world.deploy(tenant, 'newcomer-1');
  const deployed = await page();
  assert.match(deployed, /No traffic was observed in this range/);
  assert.doesNotMatch(deployed, /passes the filters|Remove a filter/);
  for (const tab of ['', '&tab=flows']) {
    assert.match(await page(`?q=port:443${tab}`), /passes the filters\. Remove a filter/);
    assert.doesNotMatch(await page(`?by=app${tab}`), /passes the filters/);
  }
});
