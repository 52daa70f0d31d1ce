import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TelemetryPoint, TelemetryRequest, TelemetryTarget } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { minutesAgo, point } from './testing/telemetry-points.ts';

let world: World;
let token: string;
let allocation: Allocation;
let serverId: number;
let tenantId: number;

before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_telemetry_ingest']);
});
after(() => world[Symbol.asyncDispose]());

/** Every test has a server of its own, whose addresses were assigned two hours ago. */
async function freshAllocation(name: string): Promise<void> {
  const { tenant } = await world.createCustomer(name);
  const deployed = await world.deploy(tenant, name);
  await world.backdate(deployed.serverId, '2 hours');
  allocation = (await world.addresses.listAllocationsOfServers([deployed.serverId]))[0]!;
  serverId = deployed.serverId;
  tenantId = tenant.id;
}

function target(series: TelemetryPoint[], of: Allocation = allocation): TelemetryTarget {
  return { id: of.id, address: of.address, assigned_at: of.assignedAt, series };
}

function request(targets: unknown[], more: Partial<TelemetryRequest> = {}): unknown {
  return { contract_version: 1, source_site_id: 7, cluster_ids: [world.clusterId], targets, ...more };
}

function post(body: unknown, bearer = token): Promise<Response> {
  return fetch(`${world.url}/api/admin/v1/protect/telemetry/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

async function receiptsOf(body: unknown): Promise<string[]> {
  const answer = await post(body);
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as { receipts: { receipt: string }[] }).receipts.map((each) => each.receipt);
}

function stored() {
  const range = { fromMs: Date.now() - 86_400_000, toMs: Date.now() };
  return world.protectTraffic.readMinutes(systemActor, { serverId, tenantId }, range);
}

test('NET-2.4.7, NET-4.b: the first delivery is accepted, an identical one is unchanged and adds nothing', async () => {
  await freshAllocation('Once');
  const body = request([target([point(minutesAgo(5), { in: 1_234_567, out: 89 })])]);
  assert.deepEqual(await receiptsOf(body), ['accepted']);
  const first = await stored();
  assert.deepEqual(await receiptsOf(body), ['unchanged']);
  assert.deepEqual(await stored(), first);
  assert.deepEqual([first[0]!.inboundBytes, first[0]!.outboundBytes, first.length], [1_234_567, 89, 1]);
});

test('NET-2.4.0: bytes are restored exactly from rates, for any size', async () => {
  await freshAllocation('Exact');
  const sizes = [0, 1, 2, 7, 59, 61, 1_000_003, 2 ** 31 + 1, 987_654_321_987, 2_999_999_999_999];
  const series = sizes.map((bytes, i) => point(minutesAgo(30 - i), { in: bytes, out: sizes.at(-1 - i)! }));
  assert.deepEqual(await receiptsOf(request([target(series)])), ['accepted']);
  const minutes = await stored();
  assert.deepEqual(
    minutes.map((minute) => minute.inboundBytes),
    sizes,
  );
  assert.deepEqual(
    minutes.map((minute) => minute.inboundBps),
    series.map((each) => each.inbound_bps),
  );
});

test('NET-2.4.7: a minute that is sent again as it was is neither written nor locked', async () => {
  await freshAllocation('Again');
  const series = Array.from({ length: 60 }, (_, i) => point(minutesAgo(70 - i), { in: i, out: 0 }));
  assert.deepEqual(await receiptsOf(request([target(series)])), ['accepted']);
  const rows = () =>
    world.database.pool.query<{ version: string }>(
      'select minute, xmin::text, xmax::text, ctid::text from protect_minutes where allocation_id = $1 order by minute',
      [allocation.id],
    );
  const before = (await rows()).rows;
  assert.deepEqual(await receiptsOf(request([target(series)])), ['unchanged']);
  assert.deepEqual((await rows()).rows, before);
});

test('NET-2.4.7: late data for a stored minute replaces it and is accepted; bytes never add up', async () => {
  await freshAllocation('Late');
  const at = minutesAgo(5);
  await receiptsOf(request([target([point(at, { in: 100, out: 10 })])]));
  assert.deepEqual(await receiptsOf(request([target([point(at, { in: 150, out: 10 })])])), ['accepted']);
  const minutes = await stored();
  assert.deepEqual([minutes.length, minutes[0]!.inboundBytes], [1, 150]);
});

test('NET-2.4.7: the same minutes delivered at the same time by two senders are stored once', async () => {
  await freshAllocation('Parallel');
  const series = Array.from({ length: 60 }, (_, i) => point(minutesAgo(70 - i), { in: i, out: i }));
  const outcomes = await Promise.all(Array.from({ length: 6 }, () => receiptsOf(request([target(series)]))));
  assert.deepEqual(outcomes.flat().toSorted(), ['accepted', ...new Array(5).fill('unchanged')]);
  assert.equal((await stored()).length, 60);
});

test('NET-2.4.7: another generation, address, cluster or scope is unmatched and stores nothing', async () => {
  await freshAllocation('Unmatched');
  const series = [point(minutesAgo(5), { in: 1, out: 1 })];
  const good = target(series);
  const crooked = [
    { ...good, id: 999_999 },
    { ...good, assigned_at: allocation.assignedAt.replace(/\d{6}Z$/, '000000Z') },
    { ...good, address: '203.0.113.251' },
  ];
  assert.deepEqual(await receiptsOf(request(crooked)), ['unmatched', 'unmatched', 'unmatched']);
  assert.deepEqual(await receiptsOf(request([good], { cluster_ids: [world.clusterId + 1] })), ['unmatched']);
  const foreign = await world.createToken(['protect_telemetry_ingest'], [world.clusterId + 1]);
  const answer = (await (await post(request([good]), foreign)).json()) as { receipts: { receipt: string }[] };
  assert.equal(answer.receipts[0]!.receipt, 'unmatched');
  assert.deepEqual(await stored(), []);
});

test('NET-2.3: minutes that began before the assignment, or ended after the release, are unmatched', async () => {
  await freshAllocation('Boundary');
  const assignedMs = Date.parse(allocation.assignedAt);
  const minuteOf = Math.floor(assignedMs / 60_000) * 60_000;
  assert.deepEqual(await receiptsOf(request([target([point(minuteOf, { in: 1, out: 1 })])])), ['unmatched']);
  assert.deepEqual(await receiptsOf(request([target([point(minuteOf + 60_000, { in: 2, out: 2 })])])), [
    'accepted',
  ]);

  await world.servers.destroyServer(systemActor, null, serverId);
  await world.jobs.drain();
  const now = minutesAgo(0);
  assert.deepEqual(await receiptsOf(request([target([point(now, { in: 3, out: 3 })])])), ['unmatched']);
});

test('NET-2.4.7: a second source site of a generation gets source_conflict and changes nothing', async () => {
  await freshAllocation('Conflict');
  const at = minutesAgo(5);
  await receiptsOf(request([target([point(at, { in: 10, out: 10 })])]));
  const other = request([target([point(at, { in: 99, out: 99 })])], { source_site_id: 8 });
  assert.deepEqual(await receiptsOf(other), ['source_conflict']);
  assert.equal((await stored())[0]!.inboundBytes, 10);
});

/** A token of a project of its own, as another monitor has. */
async function tokenOf(name: string): Promise<{ token: string; projectId: number }> {
  const permissions = ['protect_telemetry_ingest'];
  const { id } = await world.adminProjects.create(systemActor, { name, permissions, clusterIds: null });
  return { token: (await world.adminProjects.issueToken(systemActor, id, null)).token, projectId: id };
}

/** One minute for a whole test, however long it takes. */
const someMinute = minutesAgo(15);

async function receiptFrom(bearer: string, siteId: number, bytes: number): Promise<string> {
  const body = request([target([point(someMinute, { in: bytes, out: 1 })])], { source_site_id: siteId });
  const answer = (await (await post(body, bearer)).json()) as { receipts: { receipt: string }[] };
  return answer.receipts[0]!.receipt;
}

/** As if the owner had delivered last so long ago. */
const silence = (interval: string) =>
  world.database.pool.query(
    `update protect_series set source_seen_at = svc_now() - $1::interval where allocation_id = $2`,
    [interval, allocation.id],
  );

test('NET-2.4.7: a source is a site of a project: two monitors with equal site numbers do not overwrite one another', async () => {
  await freshAllocation('Two monitors');
  const [one, two] = [await tokenOf('Monitor one'), await tokenOf('Monitor two')];
  assert.equal(await receiptFrom(one.token, 7, 100), 'accepted');
  assert.equal(await receiptFrom(two.token, 7, 999), 'source_conflict');
  assert.equal((await stored())[0]!.inboundBytes, 100);
  assert.equal(await receiptFrom(one.token, 7, 200), 'accepted');
});

test('NET-2.4.7: another source takes a generation over when its owner has been silent for 15 minutes', async () => {
  await freshAllocation('Remapped');
  const monitor = await tokenOf('Monitor that remaps');
  assert.equal(await receiptFrom(monitor.token, 1, 100), 'accepted');
  await silence('14 minutes 59 seconds');
  assert.equal(await receiptFrom(monitor.token, 2, 200), 'source_conflict');
  await silence('15 minutes');
  assert.equal(await receiptFrom(monitor.token, 2, 300), 'accepted');
  assert.equal(await receiptFrom(monitor.token, 1, 400), 'source_conflict');
  assert.equal((await stored())[0]!.inboundBytes, 300);
  const { sources, conflicts } = await world.protectTraffic.readSources(systemActor, monitor.projectId);
  assert.deepEqual(
    sources.map((row) => [row.siteId, row.generations, row.takenOverAt !== null]),
    [[2, 1, true]],
  );
  assert.deepEqual(
    conflicts.map((row) => [row.siteId, row.ownerSiteId, row.generations]),
    [[1, 2, 1]],
  );
});

test('NET-2.4.7: a delivery that changes nothing tells that the owner is there', async () => {
  await freshAllocation('Quiet owner');
  const monitor = await tokenOf('Quiet monitor');
  assert.equal(await receiptFrom(monitor.token, 1, 100), 'accepted');
  await silence('20 minutes');
  assert.equal(await receiptFrom(monitor.token, 1, 100), 'unchanged');
  assert.equal(await receiptFrom(monitor.token, 2, 200), 'source_conflict');
});

test('NET-2.4.7: an operator hands a generation over at once, and only to the source that waits for it', async () => {
  await freshAllocation('Handed over');
  const [one, two] = [await tokenOf('Old monitor'), await tokenOf('New monitor')];
  await receiptFrom(one.token, 1, 100);
  assert.equal(await receiptFrom(two.token, 4, 200), 'source_conflict');
  const owner = { projectId: one.projectId, siteId: 1 };
  const handOver = (siteId: number) =>
    world.protectTraffic.handOver(systemActor, { projectId: two.projectId, siteId }, owner);
  assert.equal(await handOver(5), false);
  assert.equal(await handOver(4), true);
  assert.equal(await receiptFrom(two.token, 4, 200), 'accepted');
  assert.equal(await receiptFrom(one.token, 1, 100), 'source_conflict');
  assert.equal(await handOver(4), false, 'nothing waits any more');
});

test('NET-2.4.7: a series from before projects were kept belongs to the first delivery of its site', async () => {
  await freshAllocation('From before');
  const [one, two] = [await tokenOf('First monitor'), await tokenOf('Second monitor')];
  await receiptFrom(one.token, 3, 100);
  await world.database.pool.query(
    'update protect_series set source_project_id = null where allocation_id = $1',
    [allocation.id],
  );
  assert.equal(await receiptFrom(two.token, 4, 200), 'source_conflict');
  assert.equal(await receiptFrom(one.token, 3, 300), 'accepted');
  assert.equal(await receiptFrom(two.token, 3, 400), 'source_conflict');
});

test('NET-2.4.7: a minute that no link carries is set aside by name, and all others are stored', async () => {
  await freshAllocation('Set aside');
  const monitor = await tokenOf('Monitor with a fault');
  const good = [
    point(minutesAgo(9), { in: 3_000_000_000_000, out: 1 }),
    point(minutesAgo(3), { in: 7, out: 8 }),
  ];
  const absurd = { name: 'example.net', outbound_bytes: 1 };
  const bad = [
    point(minutesAgo(8), { in: 2 ** 51, out: 1 }),
    point(minutesAgo(7), { in: 1, out: 3_000_000_000_001 }),
    point(minutesAgo(6), { in: 1, out: 1 }, { pps: 1e300 }),
    point(minutesAgo(5), { in: 1, out: 1 }, { applications: [{ ...absurd, inbound_bytes: 1e300 }] }),
    point(minutesAgo(4), { in: 1, out: 1 }, { expected_bps: 1e300 }),
  ];
  const series = [...bad, ...good].sort((a, b) => a.timestamp.localeCompare(b.timestamp));
  const answer = await post(request([target(series)]), monitor.token);
  assert.equal(answer.status, 200);
  assert.deepEqual(await answer.json(), {
    receipts: [{ id: allocation.id, receipt: 'accepted' }],
    set_aside: bad.map(({ timestamp }, i) => ({
      id: allocation.id,
      timestamp,
      reason: i === 3 ? 'bytes_implausible' : 'rate_implausible',
    })),
  });
  const minutes = await stored();
  assert.deepEqual(
    minutes.map((minute) => minute.minute.toISOString()),
    good.map(({ timestamp }) => timestamp),
  );
  const { setAside } = await world.protectTraffic.readSources(systemActor, monitor.projectId);
  assert.deepEqual(
    setAside.map(({ minute }) => minute.toISOString()).toSorted(),
    bad.map(({ timestamp }) => timestamp),
  );
  assert.deepEqual(
    (await world.protectTraffic.readApplications(systemActor, { serverId, tenantId })).length,
    0,
  );
});

test('receipts come in the order of the targets', async () => {
  await freshAllocation('Order');
  const second = (await world.addresses.listAllocationsOfServers([serverId]))[1]!;
  const at = minutesAgo(5);
  const targets = [
    { ...target([point(at, { in: 1, out: 1 })]), id: 888_888 },
    target([point(at, { in: 1, out: 1 })], second),
    target([point(at, { in: 1, out: 1 })]),
  ];
  const answer = await post(request(targets));
  assert.deepEqual(await answer.json(), {
    receipts: [
      { id: 888_888, receipt: 'unmatched' },
      { id: second.id, receipt: 'accepted' },
      { id: allocation.id, receipt: 'accepted' },
    ],
  });
});

test('NET-2.4.0: applications are kept with their minute, names and identities as sent', async () => {
  await freshAllocation('Applications');
  const applications = [
    { name: 'example.com', inbound_bytes: 500, outbound_bytes: 60, transport: 'tcp', server_port: 443 },
    { name: 'IPsec ESP', inbound_bytes: 1, outbound_bytes: 2, transport: null, server_port: null },
    { name: 'older.example', inbound_bytes: 3, outbound_bytes: 4 },
  ];
  await receiptsOf(request([target([point(minutesAgo(5), { in: 600, out: 70 }, { applications })])]));
  assert.deepEqual((await stored())[0]!.applications, [
    applications[0],
    applications[1],
    { ...applications[2], transport: null, server_port: null },
  ]);
});

test('NET-2.4.0: what is over a bound or has an unknown field is refused whole, with 422', async () => {
  await freshAllocation('Bounds');
  const at = minutesAgo(5);
  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => point(minutesAgo(90 - i), { in: i, out: i }));
  const application = {
    name: 'a.example',
    inbound_bytes: 1,
    outbound_bytes: 1,
    transport: 'tcp',
    server_port: 1,
  };
  const good = point(at, { in: 1, out: 1 });
  const refusals: Record<string, unknown> = {
    '61 points': request([target(many(61))]),
    '51 targets': request(Array.from({ length: 51 }, () => target([]))),
    '21 applications': request([target([{ ...good, applications: new Array(21).fill(application) }])]),
    'an unknown field': request([{ ...target([good]), mac_address: '02:00:00:00:00:01' }]),
    'an unknown field of a point': request([target([{ ...good, bytes: 1 } as TelemetryPoint])]),
    'contract version 2': request([], { contract_version: 2 as 1 }),
    'a negative rate': request([target([{ ...good, pps: -1 }])]),
    'coverage above 1': request([target([{ ...good, coverage: 1.5 }])]),
    'half a minute': request([target([{ ...good, timestamp: new Date(at + 30_000).toISOString() }])]),
    'no zone': request([target([{ ...good, timestamp: new Date(at).toISOString().replace('Z', '') }])]),
    'a minute twice': request([target([good, good])]),
    'a minute to come': request([target([point(minutesAgo(-10), { in: 1, out: 1 })])]),
    'a rate without end': JSON.stringify(request([target([good])])).replace(/"pps":[\d.]+/, '"pps":1e999'),
  };
  for (const [name, body] of Object.entries(refusals)) {
    const answer = await post(body);
    assert.equal(answer.status, 422, name);
    assert.equal(
      ((await answer.json()) as { error: { code: string } }).error.code,
      'validation_failed',
      name,
    );
  }
  assert.deepEqual(await stored(), []);
  assert.equal((await receiptsOf(request([target(many(60))])))[0], 'accepted');
});

test('a body over the bound is 413, and without the permission nothing of it is read', async () => {
  const large = `{"contract_version":1,"x":"${'a'.repeat(17 * 1024 * 1024)}"}`;
  assert.equal((await post(large)).status, 413);
  const without = await world.createToken(['vm_inventory_read']);
  assert.equal((await post('not even json', without)).status, 403);
});

test('what was not observed stays unknown: null is stored as null and a missing minute has no row', async () => {
  await freshAllocation('Gaps');
  await receiptsOf(
    request([
      target([
        point(minutesAgo(9), { in: 5, out: null }, { pps: null, coverage: null }),
        point(minutesAgo(7), { in: 0, out: 0 }),
      ]),
    ]),
  );
  const minutes = await stored();
  assert.deepEqual(
    minutes.map(({ minute, inboundBytes, outboundBytes, coverage }) => [
      minute.getTime(),
      inboundBytes,
      outboundBytes,
      coverage,
    ]),
    [
      [minutesAgo(9), 5, null, null],
      [minutesAgo(7), 0, 0, 1],
    ],
  );
});

test('NET-2.4.5, NET-2.4.6: expected and attack rates are stored as sent, with why one is unknown; a changed reason replaces', async () => {
  await freshAllocation('Reasons');
  const known = { expected_bps: 80.5, expected_pps: 1.5, ddos_bps: 0, ddos_pps: 0 };
  const series = (reason: TelemetryPoint['reason']) => [
    point(minutesAgo(6), { in: 1, out: 1 }, known),
    { ...point(minutesAgo(5), { in: 1, out: 1 }), ...(reason ? { reason } : {}) },
  ];
  assert.deepEqual(await receiptsOf(request([target(series('no_epoch'))])), ['accepted']);
  assert.deepEqual(await receiptsOf(request([target(series('no_epoch'))])), ['unchanged']);
  assert.deepEqual(await receiptsOf(request([target(series('unassignable'))])), ['accepted']);
  assert.deepEqual(
    (await stored()).map((row) => [row.expectedBps, row.expectedPps, row.ddosBps, row.ddosPps, row.reason]),
    [
      [80.5, 1.5, 0, 0, null],
      [null, null, null, null, 'unassignable'],
    ],
  );
});
