/** What the points of a server's traffic say: the numbers of its page, gaps, and where attack traffic is known. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { DeliveredMinute } from '#operations/testing/deliver-minutes.ts';
import { switchViews } from '#operations/testing/switch-views.ts';
import {
  at,
  createTrafficApi,
  hourMs,
  iso,
  observedOf,
  type Point,
  type TrafficApi,
  wholeHour,
} from '../testing/traffic-api.ts';

let api: TrafficApi;
before(async () => {
  api = await createTrafficApi();
});
after(() => api.world[Symbol.asyncDispose]());

/** A minute as the page's JSON has it. */
type PageMinute = Point & Record<'applications' | 'address' | 'ddos_bps' | 'ddos_pps', unknown>;

test('the points are the numbers of the Traffic page: of one address, of all, and in longer steps', async () => {
  const { read, first, second, email, serverId } = await api.createReader('Same');
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
  await api.deliver(first, { 3: had(61), 4: had(1_234_567), 7: had(5) });
  await api.deliver(second, { 4: had(59), 7: had(9_007_199_254), 12: had(0) });
  const cookie = await api.world.signIn(email);
  const page = async <Body>(file: string, query = ''): Promise<Body> => {
    const url = `${api.world.url}/client/servers/${serverId}/traffic/${file}.json?range=custom&${wholeHour}${query}`;
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
    [drawn('outbound_bps'), drawn('inbound_bps'), drawn('expected_bps'), drawn('attack_bps')],
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
  const { read, first, path, serverId, second } = await api.createReader('Gap');
  await api.deliver(first, {
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
    provider_scan_inbound_bytes: null,
    provider_scan_outbound_bytes: null,
    dropped_inbound_bytes: null,
    dropped_outbound_bytes: null,
    dropped_inbound_packets: null,
    dropped_outbound_packets: null,
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
      {
        ...{ timestamp: iso(at(9)), ...observed, inbound_bps: 80, inbound_bytes: 600 },
        ...{ provider_scan_inbound_bytes: 0, coverage: 0.5 },
        ...{ dropped_inbound_bytes: 0, dropped_inbound_packets: 0 },
      },
      { timestamp: iso(at(10)), ...unknown },
      {
        timestamp: iso(at(11)),
        ...observed,
        inbound_bps: 0,
        outbound_bps: 0,
        inbound_bytes: 0,
        outbound_bytes: 0,
        provider_scan_inbound_bytes: 0,
        provider_scan_outbound_bytes: 0,
        ...{ dropped_inbound_bytes: 0, dropped_outbound_bytes: 0 },
        ...{ dropped_inbound_packets: 0, dropped_outbound_packets: 0 },
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
  const { read, first, ...customer } = await api.createReader('Ranges');
  const used = (name: string, inbound: number, outbound: number) => ({
    ...{ name, transport: 'tcp', server_port: 443, inbound_bytes: inbound, outbound_bytes: outbound },
  });
  await api.deliver(first, {
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
  await switchViews(api.world, customer, customer.serverId, false);
  assert.equal((await read('range=24h&applications=yes')).body.applications, null);
});

test('NET-2.4.5: attack traffic is zero only where all addresses and minutes are known to be free of it', async () => {
  const { read, first, second } = await api.createReader('Attack');
  const known = (attack: number | null, expected: number | null = 100, coverage: number | null = 1) => ({
    in: 60,
    out: 60,
    ddos_bps: attack,
    ddos_pps: attack,
    expected_bps: expected,
    expected_pps: expected,
    coverage,
  });
  await api.deliver(first, {
    0: known(0),
    1: known(0),
    2: known(8),
    3: known(0),
    5: known(0),
    6: known(null),
  });
  await api.deliver(second, {
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

test('a point names what the hypervisor dropped beside what was delivered; of a minute that is sent again it is what was sent last', async () => {
  const { read, first, second } = await api.createReader('Filtered');
  const other = await api.createReader('Unfiltered');
  const dropped = (inbound: number, outbound: number, packets: number) => ({
    dropped: {
      ...{ inbound_bps: (inbound * 8) / 60, outbound_bps: (outbound * 8) / 60 },
      ...{ inbound_pps: packets / 60, outbound_pps: 1 / 60 },
    },
  });
  await api.deliver(first, { 3: { in: 100, out: 50 } });
  await api.deliver(first, { 3: { in: 100, out: 50, ...dropped(9_000_000_007, 28, 70_001) } });
  await api.deliver(second, { 3: { in: 0, out: 0, ...dropped(10, 20, 1) } });
  await api.deliver(other.first, { 3: { in: 7, out: 7 } });
  const droppedOf = async (of: typeof read, query = wholeHour) =>
    observedOf((await of(query)).body.points).map((point) => [
      ...[point.inbound_bytes, point.dropped_inbound_bytes, point.dropped_inbound_packets],
      ...[point.outbound_bytes, point.dropped_outbound_bytes, point.dropped_outbound_packets],
    ]);
  assert.deepEqual(await droppedOf(read), [[100, 9_000_000_017, 70_002, 50, 48, 2]]);
  assert.deepEqual(await droppedOf(read, `${wholeHour}&address=${second.address}`), [[0, 10, 1, 0, 20, 1]]);
  assert.deepEqual(await droppedOf(other.read), [[7, 0, 0, 7, 0, 0]]);
});

test('a point names the part that port scans by the provider are; its totals have them, and of what is unknown no part is known', async () => {
  const { read, first, second } = await api.createReader('Scanned');
  const other = await api.createReader('Unscanned');
  const part = (inbound: number, outbound: number) => ({
    own_scan: { inbound_bps: (inbound * 8) / 60, outbound_bps: (outbound * 8) / 60 },
  });
  await api.deliver(first, { 3: { in: 1_000, out: 500, ...part(600, 200) }, 4: { in: 70, out: null } });
  await api.deliver(second, { 3: { in: 10, out: 5 } });
  await api.deliver(other.first, { 3: { in: 7, out: 7 } });
  const partsOf = async (of: typeof read, query = wholeHour) =>
    observedOf((await of(query)).body.points).map((point) => [
      ...[point.inbound_bytes, point.provider_scan_inbound_bytes],
      ...[point.outbound_bytes, point.provider_scan_outbound_bytes],
    ]);
  assert.deepEqual(await partsOf(read), [
    [1_010, 600, 505, 200],
    [70, 0, null, null],
  ]);
  assert.deepEqual(await partsOf(read, `${wholeHour}&step=hour`), [[1_080, 600, 505, 200]]);
  assert.deepEqual(await partsOf(read, `${wholeHour}&address=${second.address}`), [[10, 0, 5, 0]]);
  assert.deepEqual(await partsOf(other.read), [[7, 0, 7, 0]]);
  const { points } = (await read(wholeHour)).body;
  assert.equal(points[0].provider_scan_inbound_bytes, null);
});
