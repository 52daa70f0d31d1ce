import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { Incident } from '#contracts/admin-api/incidents.ts';
import type { schemas } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { incidentOf, recovered, secondsAgo } from '#operations/testing/incident-of.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let token: string;
let call: Call;
before(async () => {
  world = await createWorld();
  token = await world.createToken(['ddos_incident_ingest']);
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

async function deliver(...incidents: Incident[]): Promise<void> {
  const answer = await fetch(`${world.url}/api/admin/v1/protect/incidents/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 7,
      cluster_ids: [world.clusterId],
      incidents,
    }),
  });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const { outcomes } = JSON.parse(text) as { outcomes: { outcome: string }[] };
  assert.deepEqual(new Set(outcomes.map(({ outcome }) => outcome)), new Set(['applied']), text);
}

/** A customer with a server that is two hours old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  await world.backdate(serverId, '2 hours');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const path = `/api/v2/servers/${serverId}/incidents`;
  const read = (query = '') => call('GET', `${path}${query === '' ? '' : `?${query}`}`, { key });
  return { ...customer, key, serverId, path, read, address: first!.address };
}

const idsOf = (body: { incidents: schemas.Incident[] }) => body.incidents.map(({ id }) => id);

/** Incidents that began one after the other; the last one is the newest. */
const inTurn = (address: string, many: number, more: Partial<Incident> = {}) =>
  Array.from({ length: many }, (_, n) => incidentOf(address, { started_at: secondsAgo(900 - n), ...more }));

test('an attack reads as the monitor delivered it, with its times, and without any source', async () => {
  const { read, address, serverId } = await createReader('Exact');
  const details = {
    ...{ source_ports: [4096], protocols: [47, 50], peak: { bps: 14_000_000, pps: 31_000 } },
    ...{ started_at: secondsAgo(60), last_observed_at: secondsAgo(1) },
  };
  const vector = { packets_share: 0.5, bytes_share: 0.5, ports: [] };
  const delivered = incidentOf(address, {
    // The second one is of an older sensor.
    vectors: [
      { class: 'protocol_flood', ...vector, details },
      { class: 'udp_flood', ...vector },
    ],
    actions: [
      { kind: 'filtered', at: secondsAgo(30), ended_at: secondsAgo(5) },
      { kind: 'dropped', at: secondsAgo(20), ended_at: null, dropped_pps: 24_870 },
    ],
  });
  await deliver(delivered);
  const { status, body } = await read();
  assert.equal(status, 200);
  const { revision: _, target, ...rest } = delivered;
  // Our own alert to the customer comes after what the monitor did.
  const alerted = body.incidents[0].actions.pop();
  assert.deepEqual([alerted.kind, alerted.ended_at], ['alerted', null]);
  assert.deepEqual(body, {
    incidents: [
      {
        ...rest,
        actions: rest.actions.map((action) => ({ dropped_pps: null, ...action })),
        ...{ server_id: serverId, address: target.value },
        vectors: [
          {
            ...{ class: 'protocol_flood', ...vector, source_ports: [4096], protocols: [47, 50] },
            ...{ started_at: details.started_at, last_observed_at: details.last_observed_at },
          },
          {
            ...{ class: 'udp_flood', ...vector, source_ports: [], protocols: [] },
            ...{ started_at: null, last_observed_at: null },
          },
        ],
      },
    ],
    pagination: { limit: 50, total: 1, has_more: false, next_cursor: null },
  });
  const ended = recovered(delivered);
  await deliver(ended);
  const [after] = (await read()).body.incidents;
  assert.deepEqual([after.state, after.recovered_at, after.current], ['recovered', ended.recovered_at, null]);
});

test('the list is the page’s: the same incidents in the same order', async () => {
  const { read, address, email, serverId } = await createReader('Page');
  await deliver(...inTurn(address, 3), incidentOf(address, { severity: 'info', class: 'high_volume' }));
  const cookie = await world.signIn(email);
  const answer = await fetch(`${world.url}/client/servers/${serverId}/protect/incidents.json`, {
    headers: { cookie },
  });
  const page = (await answer.json()) as Record<'incidents' | 'information', Partial<schemas.Incident>[]>;
  for (const [severity, listed] of [
    ['attack', page.incidents],
    ['info', page.information],
  ] as const) {
    const { body } = await read(`severity=${severity}`);
    assert.equal(listed.length, severity === 'attack' ? 3 : 1);
    const shown = body.incidents.map((one: Record<string, unknown>, index: number) =>
      Object.fromEntries(Object.keys(listed[index]!).map((name) => [name, one[name]])),
    );
    assert.deepEqual(shown, listed);
  }
});

test('pages go from the newest to the oldest, each incident once, also when new ones arrive meanwhile', async () => {
  const { read, address, path, key } = await createReader('Pages');
  const same = secondsAgo(500);
  const all = [...inTurn(address, 4), ...inTurn(address, 3, { started_at: same })];
  await deliver(...all);
  const seen: string[] = [];
  let query = 'limit=2';
  for (;;) {
    const { body, headers } = await read(query);
    seen.push(...idsOf(body));
    const { has_more, next_cursor, limit } = body.pagination;
    assert.equal(limit, 2);
    if (!has_more) {
      assert.equal(next_cursor, null);
      break;
    }
    assert.equal(headers.get('link'), `<${world.url}${path}?limit=2&cursor=${next_cursor}>; rel="next"`);
    query = `limit=2&cursor=${next_cursor}`;
    await deliver(incidentOf(address, { started_at: secondsAgo(2) }));
  }
  const expected = all.toSorted((a, b) =>
    a.started_at === b.started_at ? (a.id < b.id ? 1 : -1) : a.started_at < b.started_at ? 1 : -1,
  );
  assert.deepEqual(
    seen,
    expected.map(({ id }) => id),
  );
  const whole = await call('GET', path, { key });
  assert.equal(whole.body.pagination.total, 10);
});

test('filters by state and severity, on every page and in the total', async () => {
  const { read, address } = await createReader('Filters');
  const [one, two, three] = inTurn(address, 3) as [Incident, Incident, Incident];
  const info = incidentOf(address, { severity: 'info', class: 'high_volume' });
  await deliver(one, two, three, info);
  await deliver(recovered(one), { ...two, revision: 2, state: 'stale', current: null });
  const cases: [query: string, expected: Incident[]][] = [
    ['', [info, three, two, one]],
    ['severity=attack', [three, two, one]],
    ['severity=info', [info]],
    ['state=active', [info, three]],
    ['state=stale,recovered', [two, one]],
    ['state=active,%20stale&severity=attack', [three, two]],
    ['state=recovered&severity=info', []],
  ];
  for (const [query, expected] of cases) {
    const { body } = await read(query);
    assert.deepEqual(
      [idsOf(body), body.pagination.total],
      [expected.map(({ id }) => id), expected.length],
      query,
    );
  }
  const first = await read('state=stale,recovered&limit=1');
  assert.deepEqual([first.body.pagination.total, first.body.pagination.has_more], [2, true]);
});

test('NET-3.2: 90 seconds after its last observation an attack is stale, also when the monitor delivers nothing more', async () => {
  const { read, address } = await createReader('Silent monitor');
  const heard = incidentOf(address, { started_at: secondsAgo(85), last_observed_at: secondsAgo(80) });
  const unheard = incidentOf(address, { last_observed_at: secondsAgo(91), started_at: secondsAgo(100) });
  await deliver(heard, unheard);
  const [first, second] = (await read()).body.incidents;
  assert.deepEqual([first.state, first.current, first.coverage], ['active', heard.current, 'complete']);
  assert.deepEqual([second.state, second.current, second.coverage], ['stale', null, 'unknown']);
  for (const [state, one] of [
    ['active', heard],
    ['stale', unheard],
  ] as const) {
    const { body } = await read(`state=${state}`);
    assert.deepEqual([idsOf(body), body.pagination.total], [[one.id], 1], state);
  }
  // A later delivery says that it goes on.
  await deliver({ ...unheard, revision: 2, last_observed_at: secondsAgo(5) });
  assert.equal((await read('state=active')).body.pagination.total, 2);
});

test('a query that can’t be answered is refused with its parameter named', async () => {
  const { read, path, key } = await createReader('Strange');
  const cursor = (text: string) => `cursor=${Buffer.from(text).toString('base64url')}`;
  const refused: [query: string, status: number, what: string][] = [
    ['state=over', 422, 'state'],
    ['state=', 422, 'state'],
    ['state=active,', 422, 'state'],
    ['state=active&state=stale', 422, 'state'],
    ['severity=high', 422, 'severity'],
    ['limit=0', 422, 'limit'],
    ['limit=201', 422, 'limit'],
    ['limit=ten', 422, 'limit'],
    ['sate=active', 422, 'sate'],
    ['cursor=%00', 422, 'cursor'],
    ['cursor=', 400, 'invalid_cursor'],
    [cursor('incidents:1'), 400, 'invalid_cursor'],
    [cursor(`incidents:999999999999999:${randomUUID()}x`), 400, 'invalid_cursor'],
    [cursor(`incidents:9999999999999999:${randomUUID()}`), 400, 'invalid_cursor'],
    [cursor(`actions:1`), 400, 'invalid_cursor'],
  ];
  for (const [query, status, what] of refused) {
    const answer = await read(query);
    assert.equal(answer.status, status, `${query}: ${answer.text.slice(0, 300)}`);
    const { fields, reason } = answer.body.error;
    assert.equal(status === 422 ? fields[0].path : reason, what, query);
  }
  assert.equal((await read(cursor(`incidents:999999999999999:${randomUUID()}`))).status, 200, 'a far one');
  assert.deepEqual((await read('state=over')).body.error.fields[0].allowed, ['active', 'stale', 'recovered']);
  assert.equal((await call('POST', path, { key, body: {} })).status, 405);
});

test('NET-1.6: while protection views are off it is a 404 with its reason; on again everything observed is there', async () => {
  const reader = await createReader('Off');
  const { read, address, serverId } = reader;
  await deliver(incidentOf(address));
  await switchViews(world, reader, serverId, false);
  const later = incidentOf(address, { started_at: secondsAgo(5) });
  await deliver(later);
  const off = await read();
  const { code, reason, doc_url } = off.body.error;
  assert.deepEqual(
    [off.status, code, reason, doc_url],
    [404, 'not_found', 'protect_disabled', '/docs/api/#error-protect_disabled'],
  );
  assert.doesNotMatch(off.text, /syn_flood/);
  await switchViews(world, reader, serverId, true);
  const { body } = await read();
  assert.deepEqual([body.incidents.length, body.incidents[0].id], [2, later.id]);
});

test('API-4.2: another account’s, another workspace’s, a destroyed and a nonexistent server are one 404, views on or off', async () => {
  const mine = await createReader('Incidents mine');
  const theirs = await createReader('Incidents theirs');
  const hidden = await createReader('Incidents hidden');
  await deliver(incidentOf(theirs.address), incidentOf(hidden.address));
  await switchViews(world, hidden, hidden.serverId, false);
  const second = await world.accounts.createTenant(systemActor, {
    organizationId: mine.tenant.organizationId,
    name: 'Second',
  });
  await world.accounts.setBillingProfile(systemActor, second.id, {
    legalName: 'Second',
    email: mine.email,
    country: 'DE',
  });
  await world.setBalance(second, 1_000_000);
  const gone = await world.deploy(mine.tenant, 'gone');
  await world.servers.destroyServer(systemActor, null, gone.serverId);
  await world.jobs.drain();
  const texts = new Set<string>();
  for (const [id, query] of [
    [999_999, ''],
    [theirs.serverId, ''],
    [theirs.serverId, 'state=nonsense'],
    [hidden.serverId, ''],
    [gone.serverId, ''],
    [mine.serverId, `tenant=${second.id}`],
    ['x', ''],
  ] as const) {
    const answer = await call('GET', `/api/v2/servers/${id}/incidents?${query}`, { key: mine.key });
    assert.equal(answer.status, 404, `${id} ${query}`);
    texts.add(answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID'));
  }
  assert.equal(texts.size, 1);
  assert.deepEqual((await mine.read()).body.incidents, []);
});

test('the next owner of an address reads nothing of the attacks before', async () => {
  const former = await createReader('Former');
  await deliver(incidentOf(former.address));
  await world.servers.destroyServer(systemActor, null, former.serverId);
  await world.jobs.drain();
  const next = await createReader('Next');
  await world.database.pool.query(
    'update allocations set address = $1 where server_id = $2 and address = $3',
    [former.address, next.serverId, next.address],
  );
  assert.deepEqual((await next.read()).body.incidents, []);
});

test('API-5.3, API-8.3: a read key lists them; every answer after the gate counts one, also 304, 404, 412 and 422', async () => {
  const reader = await createReader('Counted');
  const key = await world.createKey(reader, 'read');
  const attack = incidentOf(reader.address);
  await deliver(attack);
  const first = await call('GET', reader.path, { key });
  assert.equal(first.status, 200);
  const tag = first.headers.get('etag')!;
  let used = Number(first.headers.get('x-api-quota-used'));
  const calls: [expected: number, path: string, headers?: Record<string, string>][] = [
    [304, reader.path, { 'if-none-match': tag }],
    [412, reader.path, { 'if-match': '"stale"' }],
    [422, `${reader.path}?state=x`],
    [400, `${reader.path}?cursor=x`],
    [404, '/api/v2/servers/999999/incidents'],
  ];
  for (const [status, of, headers = {}] of calls) {
    const answer = await call('GET', of, { key, headers });
    used += 1;
    assert.deepEqual([answer.status, Number(answer.headers.get('x-api-quota-used'))], [status, used], of);
  }
  await switchViews(world, reader, reader.serverId, false);
  const off = await call('GET', reader.path, { key, headers: { 'if-none-match': tag } });
  assert.deepEqual([off.status, Number(off.headers.get('x-api-quota-used'))], [404, used + 1]);
  await switchViews(world, reader, reader.serverId, true);
  await deliver(recovered(attack));
  const changed = await call('GET', reader.path, { key, headers: { 'if-none-match': tag } });
  assert.deepEqual([changed.status, changed.body.incidents[0].state], [200, 'recovered']);
  assert.equal(await world.metering.countOfMonth(reader.tenant.id), used + 2);
  assert.equal((await call('GET', reader.path)).status, 401);
  assert.equal(await world.metering.countOfMonth(reader.tenant.id), used + 2);
});
