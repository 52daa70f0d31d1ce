import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { LivePoint, LiveRequest } from '#contracts/admin-api/live.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import { point as minutePoint, minutesAgo } from './testing/telemetry-points.ts';

let world: World;
let token: string;
before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_live_ingest', 'protect_telemetry_ingest']);
});
after(() => world[Symbol.asyncDispose]());

/** One moment for a whole test. */
let startedMs = 0;
beforeEach(() => {
  startedMs = Math.floor(world.clock.nowMs() / 10_000) * 10_000;
});
const bucketsAgo = (count: number) => startedMs - count * 10_000;

async function freshAllocation(name: string) {
  const { tenant } = await world.createCustomer(name);
  const { serverId } = await world.deploy(tenant, name.toLowerCase().replaceAll(' ', '-'));
  await world.backdate(serverId, '2 hours');
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  return { allocation: allocation!, subject: { serverId, tenantId: tenant.id } };
}

function bucket(atMs: number, bps: number, more: Partial<LivePoint> = {}): LivePoint {
  return {
    timestamp: new Date(atMs).toISOString(),
    inbound_bps: bps,
    outbound_bps: bps / 2,
    pps: 3.5,
    expected_bps: null,
    expected_pps: null,
    ddos_bps: null,
    ddos_pps: null,
    coverage: 1,
    observed_seconds: 10,
    ...more,
  };
}

const targetOf = (of: Allocation, series: LivePoint[]) => ({
  ...{ id: of.id, address: of.address, assigned_at: of.assignedAt },
  series,
});

function post(targets: unknown[], more: Partial<LiveRequest> = {}, bearer = token): Promise<Response> {
  return fetch(`${world.url}/api/admin/v1/protect/live/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 7,
      cluster_ids: [world.clusterId],
      targets,
      ...more,
    }),
  });
}

async function receiptsOf(...args: Parameters<typeof post>): Promise<string[]> {
  const answer = await post(...args);
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as { receipts: { receipt: string }[] }).receipts.map(
    ({ receipt }) => receipt,
  );
}

const read = (subject: { serverId: number; tenantId: number }) =>
  world.protectLive.read(systemActor, subject, 0);
const ratesOf = async (subject: { serverId: number; tenantId: number }) =>
  (await read(subject)).map((row) => [row.startedAt.getTime(), row.inboundBps]);

test('NET-4.c, NET-2.5.0: buckets are stored once however often they come, and a correction replaces them', async () => {
  const { allocation, subject } = await freshAllocation('Once');
  const series = [
    bucket(bucketsAgo(3), 800),
    bucket(bucketsAgo(2), 1600, { coverage: null, observed_seconds: 4.5 }),
  ];
  assert.deepEqual(await receiptsOf([targetOf(allocation, series)]), ['accepted']);
  const first = await read(subject);
  assert.deepEqual(await receiptsOf([targetOf(allocation, series)]), ['unchanged']);
  assert.deepEqual(await read(subject), first);
  assert.deepEqual(first[1], {
    address: allocation.address,
    startedAt: new Date(bucketsAgo(2)),
    ...{ inboundBps: 1600, outboundBps: 800, pps: 3.5, coverage: null, observedSeconds: 4.5 },
  });
  assert.deepEqual(await receiptsOf([targetOf(allocation, [bucket(bucketsAgo(2), 2000)])]), ['accepted']);
  assert.deepEqual(await ratesOf(subject), [
    [bucketsAgo(3), 800],
    [bucketsAgo(2), 2000],
  ]);
});

test('NET-4.c, NET-2.5.0: each target has a receipt, in the order sent, and the generation is checked at each', async () => {
  const [one, two] = [await freshAllocation('Order one'), await freshAllocation('Order two')];
  const series = [bucket(bucketsAgo(2), 8)];
  const wrong = { ...targetOf(two.allocation, series), assigned_at: one.allocation.assignedAt };
  const elsewhere = { ...targetOf(one.allocation, series), address: two.allocation.address };
  const good = targetOf(one.allocation, series);
  assert.deepEqual(await receiptsOf([wrong, good]), ['unmatched', 'accepted']);
  assert.deepEqual(await receiptsOf([elsewhere]), ['unmatched']);
  assert.deepEqual(await receiptsOf([good], { cluster_ids: [world.clusterId + 1] }), ['unmatched']);
  const foreign = await world.createToken(['protect_live_ingest'], [world.clusterId + 1]);
  assert.deepEqual(await receiptsOf([good], {}, foreign), ['unmatched']);
  assert.deepEqual(await read(two.subject), []);
  await world.servers.destroyServer(systemActor, null, one.subject.serverId);
  await world.jobs.drain();
  const later = bucket(Math.floor(world.clock.nowMs() / 10_000) * 10_000, 99);
  assert.deepEqual(await receiptsOf([targetOf(one.allocation, [later])]), ['unmatched'], 'released');
});

test('NET-2.5.1: a bucket that began before the assignment belongs to another generation', async () => {
  const { tenant } = await world.createCustomer('Boundary');
  const { serverId } = await world.deploy(tenant, 'boundary');
  await world.backdate(serverId, '10 minutes');
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  const crossing = Math.floor(Date.parse(allocation!.assignedAt) / 10_000) * 10_000;
  assert.deepEqual(await receiptsOf([targetOf(allocation!, [bucket(crossing, 1)])]), ['unmatched']);
  const both = [bucket(crossing, 1), bucket(crossing + 10_000, 2)];
  assert.deepEqual(await receiptsOf([targetOf(allocation!, both)]), ['accepted']);
  assert.deepEqual(await ratesOf({ serverId, tenantId: tenant.id }), [[crossing + 10_000, 2]]);
});

/** A token of a project of its own, as another monitor has. */
async function otherMonitor(name: string): Promise<string> {
  const permissions = ['protect_live_ingest', 'protect_telemetry_ingest'];
  const { id } = await world.adminProjects.create(systemActor, { name, permissions, clusterIds: null });
  return (await world.adminProjects.issueToken(systemActor, id, null)).token;
}

async function postMinute(of: Allocation, bearer: string): Promise<string> {
  const series = [minutePoint(minutesAgo(3), { in: 1, out: 1 })];
  const answer = await fetch(`${world.url}/api/admin/v1/protect/telemetry/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ contract_version: 1, source_site_id: 7, cluster_ids: [world.clusterId] },
      targets: [{ id: of.id, address: of.address, assigned_at: of.assignedAt, series }],
    }),
  });
  return ((await answer.json()) as { receipts: { receipt: string }[] }).receipts[0]!.receipt;
}

test('NET-2.5.0, NET-4.c: who owns the minutes decides who sends live traffic; a live receipt never claims a series', async () => {
  const { allocation, subject } = await freshAllocation('Sources');
  const other = await otherMonitor('Other monitor');
  const send = (bps: number, bearer: string) =>
    receiptsOf([targetOf(allocation, [bucket(bucketsAgo(2), bps)])], {}, bearer);
  assert.deepEqual(await send(1, other), ['accepted'], 'no source has minutes yet');
  assert.deepEqual(await send(2, token), ['source_conflict'], 'one source at a time');
  const series = 'select 1 from protect_series where allocation_id = $1';
  assert.equal((await world.database.pool.query(series, [allocation.id])).rowCount, 0);
  assert.equal(await postMinute(allocation, token), 'accepted', 'live traffic of another source is no claim');
  assert.deepEqual(await send(3, token), ['accepted']);
  assert.deepEqual(await send(4, other), ['source_conflict']);
  assert.deepEqual(await ratesOf(subject), [[bucketsAgo(2), 3]]);
  await world.database.pool.query(
    "update protect_series set source_seen_at = svc_now() - interval '16 minutes' where allocation_id = $1",
    [allocation.id],
  );
  assert.deepEqual(await send(5, other), ['source_conflict'], 'the owner still sends live traffic');
  await world.database.pool.query(
    "update protect_live_series set received_at = svc_now() - interval '1 minute' where allocation_id = $1",
    [allocation.id],
  );
  assert.deepEqual(await send(6, other), ['accepted']);
  const seen =
    "select svc_now() - source_seen_at > interval '15 minutes' as silent from protect_series where allocation_id = $1";
  assert.equal(
    (await world.database.pool.query(seen, [allocation.id])).rows[0].silent,
    true,
    'nor does it renew one',
  );
});

test('NET-2.5.0, NET-8: at most 10 targets, 30 buckets, 10 observed seconds; attack and expected rates are null', async () => {
  const { allocation } = await freshAllocation('Bounds');
  const good = targetOf(allocation, [bucket(bucketsAgo(1), 1)]);
  const statusOf = async (targets: unknown[]) => (await post(targets)).status;
  const others = (count: number) => Array.from({ length: count }, (_, i) => ({ ...good, id: 900_000 + i }));
  assert.equal(await statusOf([good, ...others(9)]), 200);
  assert.equal(await statusOf([good, ...others(10)]), 422);
  assert.equal(await statusOf([good, good]), 422);
  const many = (count: number) => Array.from({ length: count }, (_, i) => bucket(bucketsAgo(i + 1), 1));
  assert.equal(await statusOf([targetOf(allocation, many(30))]), 200);
  assert.equal(await statusOf([targetOf(allocation, many(31))]), 422);
  for (const wrong of [
    { observed_seconds: 0 },
    { observed_seconds: 10.1 },
    { coverage: 1.01 },
    { inbound_bps: -1 },
    { inbound_bps: 1e12 },
    { ddos_bps: 0 as unknown as null },
    { expected_pps: 1 as unknown as null },
    { applications: [] } as object,
    { timestamp: new Date(bucketsAgo(1) + 5000).toISOString() },
    { timestamp: new Date(startedMs + 600_000).toISOString() },
  ])
    assert.equal(
      await statusOf([targetOf(allocation, [bucket(bucketsAgo(1), 1, wrong)])]),
      422,
      JSON.stringify(wrong),
    );
  const twice = [bucket(bucketsAgo(1), 1), bucket(bucketsAgo(1), 2)];
  const refused = await post([targetOf(allocation, twice)]);
  const { error } = (await refused.json()) as { error: { fields: { path: string; message: string }[] } };
  assert.deepEqual(error.fields[0]!.path, 'targets.0.series.1.timestamp');
  assert.equal(error.fields[0]!.message, 'appears twice in one series');
});

test('NET-5.1, NET-4.l, NET-9.1: live traffic needs its own permission, which discovery advertises with version 1', async () => {
  const bearer = await world.createToken(['protect_live_ingest']);
  const headers = { authorization: `Bearer ${bearer}` };
  const discovery = await fetch(`${world.url}/api/admin/v1/discovery/`, { headers });
  const { capabilities } = (await discovery.json()) as { capabilities: object };
  assert.deepEqual(capabilities, { protect_live_ingest: true, protect_live_contract_version: 1 });
  assert.equal((await fetch(`${world.url}/api/admin/v1/protect/targets/`, { headers })).status, 200);
  const without = await world.createToken(['protect_telemetry_ingest']);
  const refused = await post([], {}, without);
  assert.equal(refused.status, 403);
  const { error } = (await refused.json()) as { error: { details: object } };
  assert.deepEqual(error.details, { permission: 'protect_live_ingest' });
});

test('NET-4.10: the status tells attempt, receipt and newest observation; a refused or repeated delivery moves none of the last two forward', async () => {
  const { allocation, subject } = await freshAllocation('Status');
  const status = () => world.protectLive.readStatus(systemActor, subject);
  assert.deepEqual(await status(), {
    ...{ attemptedAt: null, receivedAt: null, latestAt: null, addresses: 0, buckets: 0 },
    isRefused: false,
  });
  await receiptsOf([
    { ...targetOf(allocation, [bucket(bucketsAgo(2), 1)]), assigned_at: '2020-01-01T00:00:00Z' },
  ]);
  assert.equal((await status()).attemptedAt, null, 'an unmatched target is none of this server');
  await receiptsOf([targetOf(allocation, [bucket(bucketsAgo(3), 1), bucket(bucketsAgo(2), 1)])]);
  const first = await status();
  assert.deepEqual([first.latestAt?.getTime(), first.addresses, first.buckets], [bucketsAgo(2), 1, 2]);
  await receiptsOf([targetOf(allocation, [bucket(bucketsAgo(3), 1)])]);
  assert.equal((await status()).latestAt?.getTime(), bucketsAgo(2), 'a replay keeps the observation time');
  const before = await status();
  await receiptsOf([targetOf(allocation, [bucket(bucketsAgo(1), 1)])], { source_site_id: 8 });
  const after = await status();
  assert.deepEqual([after.receivedAt, after.latestAt], [before.receivedAt, before.latestAt]);
  assert.ok(after.attemptedAt! > before.attemptedAt!);
});

test('live traffic is kept for an hour, also of what is delivered no more, and other tenants never see it', async () => {
  const { allocation, subject } = await freshAllocation('Kept');
  const { subject: stranger } = await freshAllocation('Stranger');
  const old = [bucket(startedMs - 3_500_000, 1), bucket(startedMs - 3_700_000, 2), bucket(bucketsAgo(1), 3)];
  assert.deepEqual(await receiptsOf([targetOf(allocation, old)]), ['accepted']);
  assert.deepEqual((await read(subject)).length, 2);
  assert.deepEqual(await read({ ...subject, tenantId: stranger.tenantId }), []);
  const customer = { kind: 'customer', tenantIds: [stranger.tenantId] } as never;
  await assert.rejects(world.protectLive.read(customer, subject, 0), /another account/);
  await moveWorldClock(world.database, '2 minutes');
  assert.deepEqual((await read(subject)).length, 1, 'not shown beyond the hour');
  await deleteExpired();
  const { rows } = await world.database.pool.query(
    'select 1 from protect_live_buckets where allocation_id = $1',
    [allocation.id],
  );
  assert.equal(rows.length, 1);
});

async function deleteExpired(): Promise<void> {
  const loop = world.protectLive.work.parts![0] as unknown as { runOnce(): Promise<boolean> };
  assert.equal(await loop.runOnce(), true);
}
