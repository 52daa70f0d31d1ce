/** The operators' explorer: all customers by any dimension, and views under a name. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, test } from 'node:test';
import { keyText } from '#contracts/sign-on/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { visit } from '#operations/testing/visit.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

const password = 'a password for tests';
const minuteMs = 60_000;
const startedMs = worldMinuteMs;
const ago = (minutes: number) => startedMs - minutes * minuteMs;

let world: World;
const cookies: Record<string, string> = {};
/** Ids by name. */
const servers: Record<string, number> = {};
const tenants: Record<string, number> = {};

before(async () => {
  world = await createWorld();
  const token = await world.createToken(['protect_telemetry_ingest']);
  for (const staffRole of ['operator', 'support'] as const) {
    const email = `${staffRole}@staff.test`;
    await world.accounts.createPerson(systemActor, { email, name: staffRole, password, staffRole });
    cookies[staffRole] = await world.signIn(email);
  }
  const used = (name: string, port: number, inbound: number, outbound: number) => ({
    ...{ name, transport: 'tcp', server_port: port, inbound_bytes: inbound, outbound_bytes: outbound },
  });
  for (const [customer, names, bytes] of [
    ['Acorn', ['web', 'db'], 6_000],
    ['Birch', ['web'], 60_000],
  ] as const) {
    const { email, tenant } = await world.createCustomer(customer);
    cookies[customer] = await world.signIn(email);
    tenants[customer] = tenant.id;
    for (const name of names) {
      const { serverId } = await world.deploy(tenant, name);
      await world.backdate(serverId, '5 days');
      servers[`${customer} ${name}`] = serverId;
      const [of] = await world.addresses.listAllocationsOfServers([serverId]);
      await deliverMinutes(world, token, of!, [
        [ago(26 * 60), { in: bytes, out: 0 }],
        [
          ago(20),
          { in: bytes, out: bytes / 2, applications: [used(`${name}.example`, 443, bytes / 2, 100)] },
        ],
        [
          ago(10),
          {
            ...{ in: bytes, out: bytes / 2, applications: [used('git.example', 22, 30, 10)] },
            ...(customer === 'Birch' && { own_scan: { inbound_bps: 800, outbound_bps: 160 } }),
          },
        ],
      ]);
    }
  }
});
after(() => world[Symbol.asyncDispose]());

const get = (query: string, who = 'operator', path = '/console/traffic/') =>
  fetch(`${world.url}${path}${query}`, {
    headers: { cookie: cookies[who]!, accept: 'text/html' },
    redirect: 'manual',
  });
const rows = async (query: string, table: string) => {
  const answer = await get(`?${query}&format=json&table=${table}`);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return (JSON.parse(text) as { rows: Record<string, unknown>[] }).rows;
};
const bytes = async (query: string, table: string, key = table) =>
  (await rows(query, table)).map((row) => [row[key], row.inbound_bytes, row.outbound_bytes]);

test('staff see the traffic of all customers by server, customer, node, cluster and address', async () => {
  assert.deepEqual(await bytes('by=server', 'server'), [
    ['web', 120_000, 60_000],
    ['db', 12_000, 6_000],
    ['web', 12_000, 6_000],
  ]);
  const found = await rows('by=server', 'server');
  assert.deepEqual(
    found.map((row) => [row.server_id, row.customer_id]),
    [
      [servers['Birch web'], tenants.Birch],
      [servers['Acorn db'], tenants.Acorn],
      [servers['Acorn web'], tenants.Acorn],
    ],
  );
  assert.deepEqual(await bytes('by=customer', 'customer'), [
    ['Birch', 120_000, 60_000],
    ['Acorn', 24_000, 12_000],
  ]);
  for (const dimension of ['node', 'cluster']) {
    const [row, ...others] = await bytes(`by=${dimension}`, dimension);
    assert.deepEqual([row!.slice(1), others], [[144_000, 72_000], []], dimension);
  }
  assert.equal((await rows('by=address', 'address')).length, 3);
});

test('filters take several values, are negated and name networks; a name that two customers have means both', async () => {
  const names = async (q: string) =>
    (await rows(`by=server&q=${encodeURIComponent(q)}`, 'server')).map((row) => [
      row.server,
      row.customer_id,
    ]);
  const { Acorn, Birch } = tenants;
  assert.deepEqual(await names('server:web'), [
    ['web', Birch],
    ['web', Acorn],
  ]);
  assert.deepEqual(await names('server:web -customer:BIRCH'), [['web', Acorn]]);
  assert.deepEqual(await names(`server:${servers['Acorn db']},${servers['Birch web']}`), [
    ['web', Birch],
    ['db', Acorn],
  ]);
  assert.deepEqual(await names('-server:web'), [['db', Acorn]]);
  assert.deepEqual(await names('customer:none-of-these'), []);
  const [{ address }] = (await rows('by=address&q=customer:Birch', 'address')) as [{ address: string }];
  assert.deepEqual(await names(`address:${address}`), [['web', Birch]]);
  assert.deepEqual(await names(`-address:${address}/32`), [
    ['db', Acorn],
    ['web', Acorn],
  ]);
  assert.equal((await names('address:0.0.0.0/0')).length, 3);
});

test('applications are those of all servers, of one customer, and by server', async () => {
  assert.deepEqual(await bytes('by=application', 'application'), [
    ['web.example', 33_000, 200],
    ['db.example', 3_000, 100],
    ['git.example', 90, 30],
    ['Port scans by the sensors', 6_000, 1_200],
    ['Unclassified', 101_910, 70_470],
  ]);
  assert.deepEqual((await bytes('by=application&q=direction:in', 'application')).at(-2), [
    ...['Port scans by the sensors', 6_000, 0],
  ]);
  const ofAcorn = (await bytes('by=application&q=customer:Acorn', 'application')).map(([name]) => name);
  assert.ok(!ofAcorn.includes('Port scans by the sensors'), 'another customer’s servers were scanned');
  assert.deepEqual(await bytes('by=application&q=customer:Acorn+-app:git.example', 'application'), [
    ['db.example', 3_000, 100],
    ['web.example', 3_000, 100],
  ]);
  assert.deepEqual(await bytes('by=customer&q=app:web.example', 'customer'), [
    ['Birch', 30_000, 100],
    ['Acorn', 3_000, 100],
  ]);
  assert.deepEqual(await bytes('by=port&q=port:22', 'port'), [['tcp/22', 90, 30]]);
});

test('tables are sorted by any column, and files have the same rows', async () => {
  const order = async (query: string) =>
    (await rows(`by=server&${query}`, 'server')).map((row) => row.server_id);
  const [birch, db, web] = ['Birch web', 'Acorn db', 'Acorn web'].map((name) => servers[name]);
  assert.deepEqual(await order('server_sort=in&server_direction=asc'), [db, web, birch]);
  assert.deepEqual(await order('server_sort=name&server_direction=asc'), [db, web, birch]);
  assert.deepEqual(await order('server_sort=p95&server_direction=desc'), [birch, db, web]);
  const csv = await get('?by=server&format=csv&table=server');
  assert.match(csv.headers.get('content-disposition')!, /console-traffic-server\.csv/);
  assert.match(await csv.text(), /^server,inbound_bytes,outbound_bytes,share,previous_bytes/);
  const page = await (await get('?by=server&server_sort=in&server_direction=asc')).text();
  assert.doesNotMatch(page, /used the most/, 'the first of another order is not the largest');
  assert.match(page, /<th scope="col" class="kind-figure" aria-sort="ascending">/);
});

test('from the first page it takes one step to what a server did, when, and with which applications', async () => {
  const overview = await (await get('', 'operator', '/console/')).text();
  const href = /href="(\/console\/traffic\/\?q=server%3A\d+)"/.exec(overview)?.[1];
  assert.equal(href, `/console/traffic/?q=server%3A${servers['Birch web']}`, 'the largest is first');
  const page = await (await get('', 'operator', href!)).text();
  assert.match(page, /Applications over time/);
  assert.match(page, /web\.example/);
  assert.match(page, /Remove the filter server web/);
  assert.doesNotMatch(page, /db\.example/);
  for (const path of ['/console/servers/', `/console/servers/${servers['Birch web']}`, '/console/customers/'])
    assert.match(await (await get('', 'operator', path)).text(), /href="\/console\/traffic\/\?q=/, path);
  assert.match(page, new RegExp(`href="/console/servers/${servers['Birch web']}"|Open`));
});

test('the page of a server has its last day as a chart, which leads to what used it', async () => {
  const id = servers['Acorn db']!;
  const page = await (await get('', 'operator', `/console/servers/${id}`)).text();
  const data = JSON.parse(/id="traffic-day-data">(.*?)<\/script>/s.exec(page)![1]!) as {
    series: { label: string; values: (number | null)[] }[];
  };
  const sums = data.series.map(({ label, values }) => [
    label,
    values.filter((value) => value !== null).length,
  ]);
  assert.deepEqual(sums, [
    ['Out', 2],
    ['In', 2],
  ]);
  assert.match(page, new RegExp(`href="/console/traffic/\\?q=server%3A${id}"[^>]*>What used it<`));
  assert.match(page, /data-url="[^"]*chart\.json[^"]*range=24h/);
});

test('the chart has parts and the rest, in and out with the period before, and completion knows what there is', async () => {
  const draw = async (query: string) =>
    JSON.parse(await (await get(`chart.json?${query}`)).text()) as {
      series: { label: string; isPrevious?: boolean; values: (number | null)[] }[];
      lines: { label: string }[];
    };
  const parts = await draw('by=customer&range=1h');
  assert.deepEqual(
    parts.series.map(({ label }) => label),
    ['Birch', 'Acorn'],
  );
  const sides = await draw('by=none&range=24h&compare=previous');
  assert.deepEqual(
    sides.series.map(({ label }) => label),
    ['Out', 'Out, previous', 'In', 'In, previous'],
  );
  assert.ok(sides.lines.length === 2);
  const complete = async (q: string) =>
    JSON.parse(await (await get(`complete?q=${encodeURIComponent(q)}`)).text());
  assert.deepEqual(await complete('-cus'), ['-customer:']);
  assert.deepEqual(await complete('app:x customer:bi'), ['app:x customer:Birch']);
  assert.deepEqual(await complete('app:git'), ['app:git.example']);
  const flows = await (await get('?tab=flows')).text();
  // As in the tables: what no application is known of is in the picture too.
  assert.match(flows, /Customer Birch, 180 kB/);
  assert.match(flows, /Application Unclassified/);
  assert.match(flows, /Application git\.example/);
});

test('every time without values has its reason under the chart: not observed, or before there was a server', async () => {
  const reasons = async (query: string) => {
    const answer = await get(`chart.json?${query}`);
    return (JSON.parse(await answer.text()) as { reasons: { fromMs: number; toMs: number; text: string }[] })
      .reasons;
  };
  const utc = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  const hour = `range=custom&from=${utc(ago(60))}&to=${utc(ago(5))}`;
  for (const by of ['none', 'server', 'application'])
    assert.deepEqual(
      (await reasons(`${hour}&by=${by}`)).map(({ fromMs, toMs, text }) => [fromMs, toMs, text]),
      [
        [ago(60), ago(20), 'no observation'],
        [ago(19), ago(10), 'no observation'],
        [ago(9), ago(5), 'no observation'],
      ],
      by,
    );
  const [first, second] = await reasons('range=7d');
  assert.equal(first!.text, 'before the first of these servers was created');
  assert.ok(Math.abs(first!.toMs - (startedMs - 5 * 86_400_000)) <= 2 * 3_600_000);
  assert.equal(second!.text, 'no observation');
  assert.equal((await reasons('range=7d&q=server:db'))[0]!.text, 'before the server was created');
  assert.deepEqual(await reasons('range=7d&q=server:nothing'), []);
});

test('what can not be read is said and escaped, and the rest is answered', async () => {
  const page = await (
    await get(`?q=${encodeURIComponent('colour:<b> address:x customer:Birch')}&by=nonsense&top=-1`)
  ).text();
  assert.match(page, /x is no address/);
  assert.match(page, /A part of this query was not understood/);
  assert.doesNotMatch(page, /colour:<b>/);
  assert.match(page, /Remove the filter customer Birch/);
});

test('a view without any direction has nothing, by every dimension', async () => {
  for (const by of ['server', 'address', 'application', 'service', 'port', 'transport', 'customer'])
    assert.deepEqual(await rows(`by=${by}&q=-direction:in,out`, by), [], by);
});

test('URLs and saved views from before dimensions had one name go on', async () => {
  const old = 'by=app&tables=server,port&sort1=in&dir1=asc&sort2=total&dir2=asc';
  const answer = await get(`?${old}&format=json&table=app`);
  const { rows: named } = JSON.parse(await answer.text()) as { rows: Record<string, unknown>[] };
  assert.deepEqual(
    named.slice(0, 3).map((row) => row.application),
    ['git.example', 'db.example', 'web.example'],
  );
  assert.deepEqual(
    named,
    await rows('by=application&application_sort=in&application_direction=asc', 'application'),
  );
  assert.deepEqual(
    (await rows(old, 'server')).map((row) => row.server_id),
    (await rows('by=server&server_sort=share&server_direction=asc', 'server')).map((row) => row.server_id),
  );
  const drawn = async (query: string) => await (await get(`chart.json?${query}`)).text();
  assert.equal(await drawn('by=direction'), await drawn('by=none'));
});

test('only staff have the page: a customer finds none', async () => {
  for (const path of ['', 'chart.json', 'complete?q=server:'])
    assert.equal((await get(path, 'Acorn')).status, 404, path);
});

test('a view is saved for oneself or for all operators; API-1.S6: support opens those and saves none', async () => {
  const home = '/console/traffic/';
  const email = 'second@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'Second', password, staffRole: 'operator' });
  const people = {
    operator: await visit(world, 'operator@staff.test', home),
    second: await visit(world, email, home),
    support: await visit(world, 'support@staff.test', home),
  };
  const post = (who: keyof typeof people, path: string, fields: Record<string, string>) =>
    people[who].post(`${home}${path}`, fields);
  const query = 'q=customer%3ABirch&by=app&saved=1&evil=1';
  const shared = { name: 'Shared <one>', query, for: 'operators' };
  assert.equal((await post('operator', 'views', shared)).status, 303);
  assert.equal((await post('operator', 'views', { name: 'Mine', query })).status, 303);
  assert.equal((await post('support', 'views', { name: 'Own', query })).status, 403);
  assert.equal((await post('operator', 'views', { name: ' ', query })).status, 422);
  for (const who of ['support', 'second'] as const) {
    const seen = await people[who].page(home);
    assert.match(seen, /Shared &lt;one&gt;/);
    assert.match(seen, /q=customer%3ABirch&amp;by=app"/, 'nothing else is kept');
    assert.doesNotMatch(seen, />Mine</);
  }
  assert.doesNotMatch(await people.support.page(home), /Save this view|Remove Shared &lt;one/);
  const page = await people.operator.page(home);
  const [mine, ofAll] = ['Mine', 'Shared &lt;one&gt;'].map(
    (name) => /views\/\d+\/remove/.exec(page.slice(page.lastIndexOf(`>${name}</a>`)))![0],
  );
  assert.equal((await post('second', mine!, {})).status, 404);
  assert.equal((await post('support', ofAll!, {})).status, 403);
  assert.equal((await post('second', ofAll!, {})).status, 303);
  assert.match(await people.operator.page(home), /Mine/);
  assert.doesNotMatch(await people.support.page(home), /Shared &lt;one/);
});

test('servers, addresses and customers lead to the monitor, which knows their peers, once single sign-on is set up', async () => {
  const leads = async (by: string) => [
    ...(await (await get(`?by=${by}`)).text()).matchAll(/to=(%2Ffind[^"]*)"/g),
  ];
  for (const by of ['server', 'address', 'customer']) assert.equal((await leads(by)).length, 0, by);
  await world.signOn.setKey(systemActor, generateKeyPairSync('ed25519').privateKey);
  await world.signOn.savePeer(systemActor, {
    address: 'https://monitor.test',
    publicKey: keyText(generateKeyPairSync('ed25519').publicKey),
    ...{ isAccepted: false, isOffered: true },
  });
  const id = servers['Birch web']!;
  const [of] = await world.addresses.listAllocationsOfServers([id]);
  for (const [by, query] of [
    ['server', `/find/server?cluster_id=1&server_id=${id}`],
    ['address', `/find/address?address=${encodeURIComponent(of!.address)}`],
    ['customer', `/find/customer?account_id=${tenants.Birch}`],
  ] as const)
    assert.ok(
      (await leads(by)).some(([, to]) => decodeURIComponent(to!) === query),
      by,
    );
});
