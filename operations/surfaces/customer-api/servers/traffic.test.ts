import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { schemas } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { type DeliveredMinute, deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import { type Call, createApiClient } from '../testing/client.ts';

let world: World;
let token: string;
let call: Call;
before(async () => {
  hourMs = Math.floor(Date.now() / 3_600_000 - 2) * 3_600_000;
  wholeHour = `from=${iso(hourMs)}&to=${iso(at(60))}`;
  world = await createWorld();
  token = await world.createToken(['protect_telemetry_ingest']);
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const minuteMs = 60_000;
/** One hour for the whole file, two hours back: whole steps of any length up to an hour, and no turn of a minute matters. */
let hourMs: number;
/** The n-th minute of that hour. */
const at = (minute: number) => hourMs + minute * minuteMs;
const iso = (ms: number) => new Date(ms).toISOString();
let wholeHour: string;

const deliver = (of: Allocation, minutes: Record<number, DeliveredMinute>) =>
  deliverMinutes(
    world,
    token,
    of,
    Object.entries(minutes).map(([minute, had]) => [at(Number(minute)), had]),
  );

/** A customer with a server that is two days old. */
async function createReader(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  await world.backdate(serverId, '48 hours');
  const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
  const path = `/api/v2/servers/${serverId}/traffic`;
  const read = (query = '') => call('GET', `${path}?${query}`, { key });
  return { ...customer, key, serverId, path, read, first: first!, second: second! };
}

type Point = schemas.TrafficPoint;
/** A minute as the page's JSON has it. */
type PageMinute = Point & Record<'applications' | 'address' | 'ddos_bps' | 'ddos_pps', unknown>;
const observedOf = (points: Point[]) => points.filter((point) => point.observed_minutes > 0);

test('the points are the numbers of the Traffic page: of one address, of all, and in longer steps', async () => {
  const { read, first, second, email, serverId } = await createReader('Same');
  const had = (bytes: number): DeliveredMinute => ({
    in: bytes,
    out: bytes * 2,
    pps: bytes / 7,
    expected_bps: bytes + 1,
    expected_pps: 3,
    ddos_bps: bytes / 3,
    ddos_pps: 0,
    coverage: 0.9,
  });
  await deliver(first, { 3: had(61), 4: had(1_234_567), 7: had(5) });
  await deliver(second, { 4: had(59), 7: had(9_007_199_254), 12: had(0) });
  const cookie = await world.signIn(email);
  const page = async <Body>(file: string, query = ''): Promise<Body> => {
    const url = `${world.url}/client/servers/${serverId}/traffic/${file}.json?range=custom&${wholeHour}${query}`;
    return (await fetch(url, { headers: { cookie } })).json() as Promise<Body>;
  };
  for (const { address } of [first, second]) {
    const { minutes } = await page<{ minutes: PageMinute[] }>(
      'minutes',
      `&address=${encodeURIComponent(address)}`,
    );
    const { body } = await read(`${wholeHour}&address=${encodeURIComponent(address)}`);
    assert.deepEqual(
      observedOf(body.points).map(({ observed_minutes: _, observed_addresses: __, ...point }) => point),
      minutes.map(({ applications: _, address: __, ddos_bps, ddos_pps, ...minute }) => ({
        ...minute,
        attack_bps: ddos_bps,
        attack_pps: ddos_pps,
      })),
    );
    assert.equal(body.address, address);
  }
  const chart = await page<{ times: number[]; series: { values: number[] }[] }>('chart');
  const all = observedOf((await read(wholeHour)).body.points);
  assert.deepEqual(
    all.map((point) => Date.parse(point.timestamp)),
    chart.times,
  );
  // A chart has six digits.
  const drawn = (name: 'inbound_bps' | 'outbound_bps' | 'expected_bps' | 'attack_bps') =>
    all.map((point) => Number(point[name]!.toPrecision(6)));
  assert.deepEqual(
    chart.series.map((series) => series.values.map((value) => Number(value.toPrecision(6)))),
    [drawn('inbound_bps'), drawn('outbound_bps'), drawn('expected_bps'), drawn('attack_bps')],
  );
  assert.deepEqual(
    all.map((point) => [point.inbound_bytes, point.observed_addresses]),
    [
      [61, 1],
      [1_234_626, 2],
      [9_007_199_259, 2],
      [0, 1],
    ],
  );
  // A mean of the observed minutes, and every byte of them.
  const [long] = observedOf((await read(`${wholeHour}&step=hour`)).body.points);
  const mean = (values: (number | null)[]) =>
    values.reduce<number>((sum, one) => sum + one!, 0) / values.length;
  assert.ok(Math.abs(long!.inbound_bps! - mean(all.map((point) => point.inbound_bps))) < 1e-6);
  assert.deepEqual(
    [long!.inbound_bytes, long!.observed_minutes, long!.observed_addresses],
    [9_008_433_946, 4, 1],
  );
});

test('NET-2.4.2: a minute that was not observed is a point with null and never with zero; observed zeros are zeros', async () => {
  const { read, first, path, serverId, second } = await createReader('Gap');
  await deliver(first, {
    9: { in: 600, out: null, coverage: 0.5 },
    11: { in: 0, out: 0, pps: 0, coverage: 1 },
  });
  const { status, body } = await read(`from=${iso(at(8))}&to=${iso(at(12))}`);
  assert.equal(status, 200, path);
  const unknown = {
    inbound_bps: null,
    outbound_bps: null,
    pps: null,
    inbound_bytes: null,
    outbound_bytes: null,
    expected_bps: null,
    expected_pps: null,
    attack_bps: null,
    attack_pps: null,
    coverage: null,
    reason: null,
    observed_minutes: 0,
    observed_addresses: 0,
  };
  const observed = { ...unknown, observed_minutes: 1, observed_addresses: 1 };
  assert.deepEqual(body, {
    server_id: serverId,
    from: iso(at(8)),
    to: iso(at(12)),
    step: 'minute',
    step_seconds: 60,
    address: null,
    addresses: [first.address, second.address],
    last_observed_at: iso(at(12)),
    applications: null,
    applications_from: null,
    points: [
      { timestamp: iso(at(8)), ...unknown },
      { timestamp: iso(at(9)), ...observed, inbound_bps: 80, inbound_bytes: 600, coverage: 0.5 },
      { timestamp: iso(at(10)), ...unknown },
      {
        timestamp: iso(at(11)),
        ...observed,
        inbound_bps: 0,
        outbound_bps: 0,
        inbound_bytes: 0,
        outbound_bytes: 0,
        pps: 0,
        coverage: 1,
      },
    ],
  });
  const empty = await read(`from=${iso(at(20))}&to=${iso(at(21))}`);
  assert.deepEqual(empty.body.points, [{ timestamp: iso(at(20)), ...unknown }]);
  assert.equal(empty.body.last_observed_at, null);
});

test('a range by name has its step, and applications are those of the range that the server sent for', async () => {
  const { read, first, ...customer } = await createReader('Ranges');
  const used = (name: string, inbound: number, outbound: number) => ({
    ...{ name, transport: 'tcp', server_port: 443, inbound_bytes: inbound, outbound_bytes: outbound },
  });
  await deliver(first, {
    3: { in: 900, out: 90, applications: [used('example.com', 500, 50), used('scanner.example', 99, 0)] },
  });
  const { status, body } = await read('range=24h&applications=yes');
  assert.equal(status, 200);
  assert.deepEqual([body.step, body.step_seconds, body.points.length >= 288], ['5m', 300, true]);
  assert.deepEqual(body.applications, [
    {
      ...{ name: 'example.com', transport: 'tcp', server_port: 443, inbound_bytes: 500, outbound_bytes: 50 },
      last_sent_at: iso(at(4)),
    },
  ]);
  const long = (await read('range=7d&applications=yes')).body;
  assert.ok(Date.parse(long.applications_from) > Date.parse(long.from));
  assert.equal((await read('range=7d')).body.applications, null);
  assert.deepEqual((await read('range=1h&applications=yes')).body.applications, []);
  assert.equal((await read(`range=1h&from=${iso(hourMs)}`)).status, 422);
  assert.equal((await read('range=2d')).status, 422);
  await switchViews(world, customer, customer.serverId, false);
  assert.equal((await read('range=24h&applications=yes')).body.applications, null);
});

test('NET-2.4.5: attack traffic is zero only where all addresses and minutes are known to be free of it', async () => {
  const { read, first, second } = await createReader('Attack');
  const known = (attack: number | null, expected: number | null = 100, coverage: number | null = 1) => ({
    in: 60,
    out: 60,
    ddos_bps: attack,
    ddos_pps: attack,
    expected_bps: expected,
    expected_pps: expected,
    coverage,
  });
  await deliver(first, { 0: known(0), 1: known(0), 2: known(8), 3: known(0), 5: known(0), 6: known(null) });
  await deliver(second, {
    0: known(0),
    1: known(null),
    2: known(null),
    3: known(0, null, null),
    5: known(0),
  });
  const { points } = (await read(`from=${iso(hourMs)}&to=${iso(at(4))}`)).body as { points: Point[] };
  assert.deepEqual(
    points.map((point) => [
      point.attack_bps,
      point.attack_pps,
      point.expected_bps,
      point.expected_pps,
      point.coverage,
    ]),
    [
      [0, 0, 200, 200, 1],
      [null, null, 200, 200, 1],
      [8, 8, 200, 200, 1],
      [0, 0, null, null, null],
    ],
  );
  const steps = (await read(`from=${iso(hourMs)}&to=${iso(at(10))}&step=5m`)).body.points as Point[];
  assert.deepEqual(
    steps.map((point) => point.attack_bps === null),
    [false, true],
    'a known attack shows, an unknown minute is no zero',
  );
  assert.ok(steps[0]!.attack_bps! > 0);
});

test('NET-1.6: while protection views are off plain traffic stays, and what they would say is null', async () => {
  const reader = await createReader('Views');
  const { read, first } = reader;
  const rates = { expected_bps: 10, expected_pps: 11, ddos_bps: 0, ddos_pps: 0 };
  await deliver(first, { 1: { in: 75, out: 75, pps: 3, coverage: 1, ...rates } });
  const minute = `from=${iso(at(1))}&to=${iso(at(2))}`;
  const [seen] = (await read(minute)).body.points;
  const { ddos_bps: attack_bps, ddos_pps: attack_pps, ...expected } = rates;
  assert.deepEqual({ ...seen, ...expected, attack_bps, attack_pps }, seen);
  await switchViews(world, reader, reader.serverId, false);
  const off = { expected_bps: null, expected_pps: null, attack_bps: null, attack_pps: null };
  assert.deepEqual((await read(minute)).body.points, [{ ...seen, ...off }]);
  await switchViews(world, reader, reader.serverId, true);
  assert.deepEqual((await read(minute)).body.points, [seen]);
});

test('an unknown value has its reason; that of an attack value is hidden with the protection views', async () => {
  const reader = await createReader('Reasons');
  const { read, first } = reader;
  await deliver(first, {
    1: { reason: 'sensor_down' },
    2: { in: 75, out: 75, coverage: 1, reason: 'no_epoch' },
    3: { in: 75, out: 75, coverage: 1, ddos_bps: 0, ddos_pps: 0 },
  });
  const seen = async () =>
    ((await read(`from=${iso(hourMs)}&to=${iso(at(4))}`)).body.points as Point[]).map((point) => [
      point.reason,
      point.inbound_bps,
      point.attack_bps,
      point.observed_minutes,
    ]);
  assert.deepEqual(await seen(), [
    [null, null, null, 0],
    ['sensor_down', null, null, 0],
    ['no_epoch', 10, null, 1],
    [null, 10, 0, 1],
  ]);
  await switchViews(world, reader, reader.serverId, false);
  assert.deepEqual(
    (await seen()).map(([reason]) => reason),
    [null, 'sensor_down', null, null],
  );
});

test('the range: whole steps that hold it, the last 60 steps where none is named, never beyond now', async () => {
  const { read } = await createReader('Range');
  const ends = async (query: string) => {
    const { body, status, text } = await read(query);
    assert.equal(status, 200, text);
    assert.equal(
      body.points.length,
      (Date.parse(body.to) - Date.parse(body.from)) / (body.step_seconds * 1_000),
    );
    return [body.from, body.to];
  };
  assert.deepEqual(await ends(`from=${iso(at(1) + 1)}&to=${iso(at(2) + 1)}`), [iso(at(1)), iso(at(3))]);
  assert.deepEqual(await ends(`from=${iso(at(7))}&to=${iso(at(8))}&step=hour`), [iso(hourMs), iso(at(60))]);
  assert.deepEqual(await ends(`to=${iso(hourMs)}`), [iso(at(-60)), iso(hourMs)]);
  assert.deepEqual(await ends(`to=${iso(hourMs)}&step=15m`), [iso(at(-900)), iso(hourMs)]);
  const offset = `${iso(at(120)).slice(0, 19)}%2B02:00`;
  assert.deepEqual(await ends(`to=${offset}`), [iso(at(-60)), iso(hourMs)], 'an offset');
  for (const [query, stepMs] of [
    ['', minuteMs],
    ['to=2099-01-01T00:00:00Z', minuteMs],
    ['step=day', 86_400_000],
  ] as const) {
    const before = Date.now();
    const [from, to] = await ends(query);
    const now = [before, Date.now()].map((ms) => Math.ceil(ms / stepMs) * stepMs);
    assert.ok(now.includes(Date.parse(to!)), `${query} ends at ${to}`);
    assert.equal(Date.parse(to!) - Date.parse(from!), 60 * stepMs, query);
  }
  const day = await read(`from=${iso(hourMs - 86_400_000 + 1)}&to=${iso(hourMs + 1)}`);
  assert.equal(day.body.points.length, 1_441, 'a day that begins within a minute');
});

test('a query that can’t be answered is a 422 that names the parameter and says what to do', async () => {
  const { read, first, path, key } = await createReader('Strange');
  const other = await createReader('Strange other');
  const far = iso(hourMs - schemas.trafficPointsMax * minuteMs - 1);
  const cases: [query: string, path: string, message: RegExp][] = [
    ['from=yesterday', 'from', /RFC 3339/],
    ['from=2026-11-22', 'from', /RFC 3339/],
    ['from=2026-11-22T10:00:00', 'from', /RFC 3339 with Z or an offset/],
    ['from=2026-11-22T10:00:00+02:00', 'from', /%2B/],
    ['to=2026-02-30T10:00:00Z', 'to', /calendar/],
    ['to=2026-11-22T24:00:00Z', 'to', /RFC 3339/],
    ['to=1999-11-22T10:00:00Z', 'to', /RFC 3339/],
    ['to=-1', 'to', /RFC 3339/],
    ['from=', 'from', /RFC 3339/],
    [`from=${iso(hourMs)}&from=${iso(hourMs)}`, 'from', /string/],
    [`from=${'1'.repeat(5_000)}`, 'from', /characters/],
    [`from=${iso(at(2))}&to=${iso(at(1))}`, 'from', /before `to`/],
    [`from=${iso(at(2))}&to=${iso(at(2))}`, 'from', /before `to`/],
    ['from=2099-01-01T00:00:00Z', 'from', /in the past/],
    ['from=2099-01-01T00:00:00Z&to=2099-02-01T00:00:00Z', 'from', /in the past/],
    [`from=${far}&to=${iso(hourMs)}`, 'from', /1501 steps.*at most 1500.*longer `step`/],
    ['step=2m', 'step', /./],
    ['step=60', 'step', /./],
    ['stpe=hour', 'stpe', /did you mean `step`/],
    ['address=here', 'address', /no such public address/],
    ['address=', 'address', /no such public address/],
    ['address=%00', 'address', /./],
    [`address=${'f'.repeat(65)}`, 'address', /./],
    [`address=${other.first.address}`, 'address', /no such public address/],
  ];
  for (const [query, where, message] of cases) {
    const answer = await read(query);
    assert.equal(answer.status, 422, `${query}: ${answer.text.slice(0, 300)}`);
    const { reason, fields } = answer.body.error;
    assert.deepEqual([reason, fields[0].path], ['invalid_fields', where], query);
    assert.match(fields[0].message, message, query);
  }
  const { allowed } = (await read('address=192.0.2.255')).body.error.fields[0];
  assert.deepEqual(allowed.includes(first.address) && !allowed.includes(other.first.address), true);
  const exact = await read(`from=${iso(hourMs - schemas.trafficPointsMax * minuteMs)}&to=${iso(hourMs)}`);
  assert.equal(exact.body.points.length, schemas.trafficPointsMax);
  assert.equal((await call('POST', path, { key, body: {} })).status, 405);
});

test('an address is found however it is written', async () => {
  const { read, first, second } = await createReader('Written');
  const six = [first, second].find(({ address }) => address.includes(':'))!;
  await deliver(six, { 1: { in: 75, out: 75 } });
  const [head, tail] = six.address.split('::');
  const long = `${head!.toUpperCase()}:${'0:'.repeat(8 - head!.split(':').length - tail!.split(':').length)}${tail}`;
  assert.notEqual(long, six.address);
  const { body } = await read(`${wholeHour}&address=${encodeURIComponent(long)}`);
  assert.equal(body.address, six.address);
  assert.equal(body.points[1].inbound_bps, 10);
});

test('API-4.2: another account’s, another workspace’s, a destroyed and a nonexistent server are one 404', async () => {
  const mine = await createReader('Traffic mine');
  const theirs = await createReader('Traffic theirs');
  await deliver(theirs.first, { 1: { in: 600, out: 600 } });
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
    [theirs.serverId, `address=${theirs.first.address}`],
    [theirs.serverId, 'nonsense=1&from=x'],
    [gone.serverId, ''],
    [mine.serverId, `tenant=${second.id}`],
    ['x', ''],
  ] as const) {
    const answer = await call('GET', `/api/v2/servers/${id}/traffic?${query}`, { key: mine.key });
    assert.equal(answer.status, 404, `${id} ${query}`);
    texts.add(answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID'));
  }
  assert.equal(texts.size, 1);
  assert.equal((await theirs.read(wholeHour)).body.points[1].inbound_bytes, 600);
});

test('the next owner of an address reads nothing of the traffic before', async () => {
  const former = await createReader('Former');
  await deliver(former.first, { 5: { in: 4_242, out: 42 } });
  await world.servers.destroyServer(systemActor, null, former.serverId);
  await world.jobs.drain();
  const next = await createReader('Next');
  await world.database.pool.query('update allocations set address = $1 where id = $2', [
    former.first.address,
    next.first.id,
  ]);
  const query = `${wholeHour}&address=${encodeURIComponent(former.first.address)}`;
  const { status, body } = await next.read(query);
  assert.equal(status, 200);
  assert.deepEqual(observedOf(body.points), []);
});

test('API-5.3, API-8.3: a read key reads it; every answer after the gate counts one, also 304, 404 and 422', async () => {
  const reader = await createReader('Counted');
  const key = await world.createKey(reader, 'read');
  await deliver(reader.first, { 1: { in: 1, out: 1 } });
  const path = `${reader.path}?${wholeHour}`;
  const first = await call('GET', path, { key });
  assert.equal(first.status, 200);
  const tag = first.headers.get('etag')!;
  const calls: [expected: number, path: string, headers?: Record<string, string>][] = [
    [200, path],
    [304, path, { 'if-none-match': tag }],
    [412, path, { 'if-match': '"stale"' }],
    [422, `${reader.path}?step=x`],
    [404, '/api/v2/servers/999999/traffic'],
  ];
  let used = Number(first.headers.get('x-api-quota-used'));
  for (const [status, of, headers = {}] of calls) {
    const answer = await call('GET', of, { key, headers });
    used += 1;
    assert.deepEqual([answer.status, Number(answer.headers.get('x-api-quota-used'))], [status, used], of);
  }
  assert.equal(await world.metering.countOfMonth(reader.tenant.id), used);
  assert.equal((await call('GET', path)).status, 401);
  assert.equal(await world.metering.countOfMonth(reader.tenant.id), used);
  await deliver(reader.first, { 2: { in: 1, out: 1 } });
  const changed = await call('GET', path, { key, headers: { 'if-none-match': tag } });
  assert.equal(changed.status, 200, 'a late minute is a new version');
});
