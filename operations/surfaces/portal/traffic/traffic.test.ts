import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
let token: string;

before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_telemetry_ingest']);
});
after(() => world[Symbol.asyncDispose]());

/** One moment for a whole test: a minute that turns between what is sent and what is expected changes nothing. */
let startedMs = 0;
beforeEach(() => {
  startedMs = Math.floor(world.clock.nowMs() / 60_000) * 60_000;
});
const minutesAgo = (minutes: number) => startedMs - minutes * 60_000;
const iso = (ms: number) => new Date(ms).toISOString();

interface Bytes {
  in: number | null;
  out: number | null;
  applications?: TelemetryPoint['applications'];
}

async function deliver(of: Allocation, minutes: Record<number, Bytes>): Promise<void> {
  const rate = (bytes: number | null) => (bytes === null ? null : (bytes * 8) / 60);
  const series = Object.entries(minutes).map(([ago, bytes]) => ({
    timestamp: iso(minutesAgo(Number(ago))),
    inbound_bps: rate(bytes.in),
    outbound_bps: rate(bytes.out),
    pps: 1,
    expected_bps: null,
    expected_pps: null,
    ddos_bps: null,
    ddos_pps: null,
    coverage: 1,
    applications: bytes.applications ?? [],
  }));
  const target = { id: of.id, address: of.address, assigned_at: of.assignedAt, series };
  const answer = await fetch(`${world.url}/api/admin/v1/protect/telemetry/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 1,
      cluster_ids: [world.clusterId],
      targets: [target],
    }),
  });
  const { receipts } = (await answer.json()) as { receipts: { receipt: string }[] };
  assert.equal(receipts[0]?.receipt, 'accepted');
}

/** A signed-in customer with a server that is a day and a half old. */
async function createReader(name: string) {
  const { email, tenant } = await world.createCustomer(name);
  const { serverId } = await world.deploy(tenant, `${name.toLowerCase().replace(' ', '-')}-1`);
  await world.backdate(serverId, '36 hours');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const cookie = await world.signIn(email);
  const get = (tail = '') =>
    fetch(`${world.url}/client/servers/${serverId}/traffic${tail}`, {
      headers: { cookie, accept: 'text/html' },
    });
  const list = () => fetch(`${world.url}/client/`, { headers: { cookie } });
  return { list, serverId, tenant, allocations, get, first: allocations[0]!, second: allocations[1]! };
}

interface MinutesFile {
  minutes: {
    timestamp: string;
    address: string;
    inbound_bytes: number | null;
    outbound_bytes: number | null;
  }[];
}

test('the bytes of each minute are on the page, in the JSON and in the CSV exactly as they were posted', async () => {
  const reader = await createReader('Exact');
  const posted: Record<number, Bytes> = {
    12: { in: 1_234_567, out: 7 },
    11: { in: 0, out: 0 },
    10: { in: 9_007_199_254, out: 1 },
    9: { in: 61, out: 59 },
  };
  await deliver(reader.first, posted);
  const { minutes } = (await (await reader.get('/minutes.json?range=1h')).json()) as MinutesFile;
  const expected = [12, 11, 10, 9].map((ago) => ({
    timestamp: iso(minutesAgo(ago)),
    address: reader.first.address,
    inbound_bytes: posted[ago]!.in,
    outbound_bytes: posted[ago]!.out,
  }));
  assert.deepEqual(
    minutes.map(({ timestamp, address, inbound_bytes, outbound_bytes }) => ({
      timestamp,
      address,
      inbound_bytes,
      outbound_bytes,
    })),
    expected,
  );
  const csv = (await (await reader.get('/minutes.csv?range=1h')).text()).trim().split('\r\n').slice(1);
  assert.deepEqual(
    csv.map((line) => line.split(',').slice(0, 4)),
    expected.map((row) => Object.values(row).map(String)),
  );
  const page = await (await reader.get('/minutes?range=1h')).text();
  for (const { inbound_bytes, outbound_bytes } of expected) {
    assert.ok(page.includes(`>${inbound_bytes!.toLocaleString('en-US')}</td>`), String(inbound_bytes));
    assert.ok(page.includes(`>${outbound_bytes!.toLocaleString('en-US')}</td>`), String(outbound_bytes));
  }
});

test('a gap stays a gap: what was not observed is absent or unknown, never zero', async () => {
  const reader = await createReader('Gap');
  await deliver(reader.first, { 9: { in: 600, out: null }, 6: { in: 300, out: 30 } });
  const { minutes } = (await (await reader.get('/minutes.json?range=15m')).json()) as MinutesFile;
  assert.deepEqual(
    minutes.map((minute) => [minute.timestamp, minute.inbound_bytes, minute.outbound_bytes]),
    [
      [iso(minutesAgo(9)), 600, null],
      [iso(minutesAgo(6)), 300, 30],
    ],
  );
  const chart = (await (await reader.get('/chart.json?range=15m')).json()) as {
    times: number[];
    stepMs: number;
    series: { values: (number | null)[] }[];
  };
  assert.deepEqual(chart.times, [minutesAgo(9), minutesAgo(6)]);
  assert.equal(chart.stepMs, 60_000);
  assert.deepEqual(
    chart.series.map((series) => series.values),
    [
      [null, 4],
      [80, 40],
    ],
  );
  assert.match(
    await (await reader.get('/minutes?range=15m')).text(),
    /<span class="unknown">unknown<\/span>/,
  );
});

test('NET-2.4.3: a minute that was not observed says why in the table, the files and the chart, and is no observation', async () => {
  const reader = await createReader('Why');
  const down = { in: null, out: null, pps: null, coverage: 0, reason: 'sensor_down' } as const;
  await deliverMinutes(world, token, reader.first, [
    [minutesAgo(4), { in: 600, out: 60, coverage: 1 }],
    [minutesAgo(3), { in: 300, out: 30, coverage: 0.5, reason: 'packets_lost' }],
    [minutesAgo(2), down],
  ]);
  const page = await (await reader.get('?range=15m')).text();
  const table = await (await reader.get('/minutes?range=15m')).text();
  assert.match(table, /did not run, so the traffic is unknown\.">sensor not running</);
  assert.match(table, />50\.0.%: data lost</);
  assert.match(page, /3<\/(?:b|strong|span)>|2 minutes observed/);
  assert.match(page, new RegExp(`Up to date, ${iso(minutesAgo(3)).slice(11, 16)}`));
  const { notes, series } = (await (await reader.get('/chart.json?range=15m')).json()) as {
    notes: Record<string, string>;
    series: { values: (number | null)[] }[];
  };
  assert.deepEqual(notes, { [minutesAgo(3)]: 'data lost', [minutesAgo(2)]: 'sensor not running' });
  assert.deepEqual(series[1]!.values, [80, 40, null]);
  const csv = await (await reader.get('/minutes.csv?range=15m')).text();
  assert.match(csv, /,,,,0,,,,,sensor_down/);
  const list = await (await reader.list()).text();
  assert.match(list, /40\.0 bit\/s|40 bit\/s/, 'the newest observed minute');
});

test('NET-2.4.3: a minute of an attack that was not checked says so in place of its coverage', async () => {
  const reader = await createReader('Unchecked');
  const attack = { ddos_bps: 8, ddos_pps: 1, coverage: null, reason: 'detector_incomplete' } as const;
  await deliverMinutes(world, token, reader.first, [[minutesAgo(3), { in: 600, out: 60, ...attack }]]);
  const page = await (await reader.get('/minutes?range=15m')).text();
  assert.match(page, /may be larger than shown\.">attack not checked</);
});

test('what the hypervisor dropped is a line of the chart and a column of the minutes, beside what was delivered', async () => {
  const [reader, other] = [await createReader('Filtered'), await createReader('Unfiltered')];
  const dropped = { inbound_bps: 8_000, outbound_bps: 800, inbound_pps: 10, outbound_pps: 1 };
  await deliverMinutes(world, token, reader.first, [
    [minutesAgo(3), { in: 600, out: 60, dropped }],
    [minutesAgo(2), { in: 600, out: 60 }],
  ]);
  await deliverMinutes(world, token, other.first, [[minutesAgo(3), { in: 600, out: 60 }]]);
  const shown = async (of: typeof reader) => {
    const { series } = (await (await of.get('/chart.json?range=15m')).json()) as {
      series: { label: string; values: (number | null)[] }[];
    };
    const line = series.find(({ label }) => label === 'Dropped at the hypervisor, in and out');
    const page = await (await of.get('/minutes?range=15m')).text();
    const [, ...cells] = page.match(/>(?:600|60|66,000|0)<\/td>/g) ?? [];
    return [line?.values, page.includes('Dropped is what the hypervisor dropped'), cells.length];
  };
  assert.deepEqual(await shown(reader), [[8_800, 0], true, 5], 'a minute without drops has 0 of them');
  assert.deepEqual(await shown(other), [undefined, false, 1]);
});

test('port scans by the provider are a row of their own beside the applications, in the page and the files, and the totals keep them', async () => {
  const [reader, other] = [await createReader('Scanned'), await createReader('Unscanned')];
  const rate = (bytes: number) => (bytes * 8) / 60;
  const shop = { name: 'shop.example', transport: 'tcp', server_port: 443 };
  await deliverMinutes(world, token, reader.first, [
    [
      minutesAgo(5),
      {
        ...{ in: 98_000, out: 52_000, coverage: 1 },
        own_scan: { inbound_bps: rate(90_000), outbound_bps: rate(50_000) },
        applications: [{ ...shop, inbound_bytes: 3_000, outbound_bytes: 2_000 }],
      },
    ],
  ]);
  await deliver(other.first, { 5: { in: 600, out: 60 } });
  const rowIn = async (query: string, of = reader) => {
    const text = await (await of.get(`?range=1h${query}`)).text();
    const row = /<tr[^>]*>(?:(?!<\/tr>)[\s\S])*Port scans by your provider[\s\S]*?<\/tr>/.exec(text)?.[0];
    return row?.match(/>[\d.]+ k?B(?=<)/g)?.map((figure) => figure.slice(1));
  };
  assert.deepEqual(await rowIn(''), ['90.0 kB', '50.0 kB']);
  assert.deepEqual(await rowIn('&q=direction:in'), ['90.0 kB'], 'no row has anything out');
  assert.equal(await rowIn('&q=app:shop.example'), undefined, 'they are no application');
  assert.equal(await rowIn('', other), undefined, 'another customer’s server');
  const page = await (await reader.get('/minutes?range=1h')).text();
  assert.match(page, />98,000<\/td>/, 'the minute has all of its bytes');
  const { minutes } = (await (await reader.get('/minutes.json?range=1h')).json()) as {
    minutes: Record<string, unknown>[];
  };
  assert.deepEqual(
    minutes.map((row) => [
      row.inbound_bytes,
      row.provider_scan_inbound_bytes,
      row.provider_scan_outbound_bytes,
    ]),
    [[98_000, 90_000, 50_000]],
  );
  const [header, line] = (await (await reader.get('/minutes.csv?range=1h')).text()).split('\r\n');
  assert.match(header!, /,provider_scan_inbound_bytes,provider_scan_outbound_bytes,dropped_/);
  assert.match(line!, /,90000,50000,0,0,0,0$/);
});

test('a server’s addresses are summed in the chart, and each can be looked at alone', async () => {
  const reader = await createReader('Sums');
  await deliver(reader.first, { 5: { in: 750, out: 75 } });
  await deliver(reader.second, { 5: { in: 7_500, out: 0 } });
  const valuesOf = async (query: string) => {
    const chart = (await (await reader.get(`/chart.json?range=15m${query}`)).json()) as {
      series: { values: number[] }[];
    };
    return chart.series.map((series) => series.values[0]);
  };
  assert.deepEqual(await valuesOf(''), [10, 1_100]);
  assert.deepEqual(await valuesOf(`&address=${encodeURIComponent(reader.second.address)}`), [0, 1_000]);
});

test('long ranges show the mean of the minutes that were observed, and lose no byte of the sum', async () => {
  const reader = await createReader('Means');
  const base = 24 * 60;
  await deliver(reader.first, { [base - 1]: { in: 600, out: 60 }, 3: { in: 1_200, out: 0 } });
  const steps = await world.protectTraffic.readSteps(
    systemActor,
    { serverId: reader.serverId, tenantId: reader.tenant.id },
    { fromMs: minutesAgo(base + 60), toMs: minutesAgo(0), stepSeconds: 1_800 },
  );
  assert.deepEqual(
    steps.map((step) => [step.inboundBps, step.inboundBytes, step.minutes]),
    [
      [80, 600, 1],
      [160, 1_200, 1],
    ],
  );
});

test('NET-2.4.4: an application is listed for 24 hours after the server last sent bytes for it', async () => {
  const reader = await createReader('Names');
  const seen = (name: string, inbound: number, outbound: number, port = 443) => ({
    name,
    inbound_bytes: inbound,
    outbound_bytes: outbound,
    transport: 'tcp',
    server_port: port,
  });
  await deliver(reader.first, {
    [25 * 60]: { in: 9, out: 9, applications: [seen('yesterday.example', 5, 5)] },
    8: { in: 9, out: 9, applications: [seen('example.com', 100, 10), seen('scanner.example', 900, 0)] },
    7: { in: 9, out: 9, applications: [seen('example.com', 50, 0), seen('example.com', 1, 1, 80)] },
  });
  const file = await reader.get('?range=24h&by=service&format=json&table=service');
  const { rows } = (await file.json()) as { rows: Record<string, unknown>[] };
  assert.deepEqual(
    rows.map((row) => [
      ...[row.application, row.service, row.inbound_bytes, row.outbound_bytes, row.last_sent_at],
    ]),
    [
      ['example.com', 'tcp/443', 150, 10, iso(minutesAgo(8))],
      ['example.com', 'tcp/80', 1, 1, iso(minutesAgo(7))],
      ['Unclassified', null, 0, 7, null],
    ],
  );
  const page = await (await reader.get()).text();
  assert.match(page, /example\.com/);
  assert.doesNotMatch(page, /scanner\.example|yesterday\.example/);
});

test('the page says how fresh it is: nothing yet, a minute ago, or nothing new since', async () => {
  const reader = await createReader('Fresh');
  const empty = await (await reader.get()).text();
  assert.match(empty, /Nothing observed yet/);
  await deliver(reader.first, { 2: { in: 1, out: 1 } });
  const fresh = await (await reader.get()).text();
  assert.match(fresh, /Up to date, \d\d:\d\d UTC/);
  assert.match(fresh, /Delivery: Data is current\./);
  const stale = await createReader('Stale');
  await deliver(stale.first, { 30: { in: 1, out: 1 } });
  const late = await (await stale.get()).text();
  assert.match(late, /No new minutes since \d\d:\d\d UTC.*unknown, not zero/s);
  assert.match(late, /Delivery: Newest data .*\d\d min ago/, 'what has just come is half an hour old');
});

test('the list of servers shows the newest rates with their age, and calls old ones unknown', async () => {
  const reader = await createReader('Listed');
  await deliver(reader.first, { 3: { in: 7_500_000, out: 75_000 }, 2: { in: 750_000, out: 7_500 } });
  await deliver(reader.second, { 2: { in: 750_000, out: null } });
  const list = await (await reader.list()).text();
  assert.match(list, />200 kbit\/s<\/td>/);
  assert.match(list, />1.00 kbit\/s<\/td>/);
  const stale = await createReader('Listed Stale');
  await deliver(stale.first, { 20: { in: 750_000, out: 7_500 } });
  const staleList = await (await stale.list()).text();
  assert.doesNotMatch(staleList, /bit\/s/);
  assert.match(staleList, /(19|20) min ago/);
});

test('a name that came from the network is shown as text, and is no formula in the CSV', async () => {
  const reader = await createReader('Hostile');
  const hostile = (name: string) => ({
    name,
    inbound_bytes: 1,
    outbound_bytes: 1,
    transport: 'tcp',
    server_port: 443,
  });
  await deliver(reader.first, {
    3: {
      in: 9,
      out: 9,
      applications: [hostile('<script>alert(1)</script>'), hostile('=cmd|calc'), hostile('a,"b"')],
    },
  });
  const page = await (await reader.get()).text();
  assert.ok(!page.includes('<script>alert'));
  assert.ok(page.includes('&lt;script&gt;alert(1)&lt;/script&gt;'));
  const csv = await (await reader.get('?by=service&format=csv&table=service')).text();
  assert.match(csv, /^'=cmd\|calc,/m);
  assert.match(csv, /^"a,""b""",/m);
});

test('exact minutes of more than seven days at a time are refused with a sentence', async () => {
  const reader = await createReader('Long');
  const answer = await reader.get('/minutes.json?range=30d');
  assert.equal(answer.status, 422);
  assert.match(await answer.text(), /at most 7 days/);
});

test('the next owner of an address sees nothing of the traffic before', async () => {
  const { serverId, first, tenant } = await createReader('Former');
  await deliver(first, { 5: { in: 4_242, out: 42 } });
  await world.servers.destroyServer(systemActor, null, serverId);
  await world.jobs.drain();
  const next = await createReader('Next');
  await world.database.pool.query('update allocations set address = $1 where id = $2', [
    first.address,
    next.first.id,
  ]);
  const { minutes } = (await (await next.get('/minutes.json?range=1h')).json()) as MinutesFile;
  assert.deepEqual(minutes, []);
  assert.notEqual(tenant.id, next.tenant.id);
});

test('minutes older than three months are deleted by the retention loop, newer ones stay', async () => {
  await using old = await createWorld();
  const { tenant } = await old.createCustomer('Retained');
  const { serverId, allocations } = await old.deploy(tenant, 'old');
  await old.backdate(serverId, '1 day');
  const [allocation] = await old.addresses.listAllocationsOfServers([serverId]);
  const target = (ago: number) => ({
    id: allocations[0]!.id,
    address: allocation!.address,
    assigned_at: allocation!.assignedAt,
    series: [
      {
        timestamp: iso(minutesAgo(ago)),
        inbound_bps: 8,
        outbound_bps: 8,
        pps: null,
        expected_bps: null,
        expected_pps: null,
        ddos_bps: null,
        ddos_pps: null,
        coverage: null,
        applications: [],
      },
    ],
  });
  const project = await old.adminProjects.create(systemActor, {
    name: 'Monitor of the past',
    permissions: ['protect_telemetry_ingest'],
    clusterIds: null,
  });
  for (const ago of [600, 5]) {
    await old.protectTraffic.receive(
      { projectId: project.id, clusterIds: null },
      { contract_version: 1, source_site_id: 1, cluster_ids: [old.clusterId], targets: [target(ago)] },
    );
  }
  await moveWorldClock(old.database, '3 months -300 minutes');
  assert.equal(await loopOf(old.protectTraffic, 'operations-traffic-retention').runOnce(), true);
  const { rows } = await old.database.pool.query('select minute from protect_minutes');
  assert.deepEqual(
    rows.map((row) => row.minute.getTime()),
    [minutesAgo(5)],
  );
});
