import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createRollupLoop } from '#operations/bandwidth/index.ts';
import { createReadingLoop } from '#operations/bandwidth/record-readings.ts';
import { singleDriver } from '#operations/hypervisors/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { worldMinuteMs, worldStartMs } from '#operations/testing/world-time.ts';
import { type Call, createApiClient } from '../testing/client.ts';

/** What the hypervisor counts, by guest. */
const counters = new Map<string, { received: number; sent: number }>();
let world: World;
let call: Call;
before(async () => {
  world = await createWorld({
    hypervisor: (usual) => ({
      ...usual,
      async observeGuests() {
        return [...counters].map(([name, { received, sent }]) => ({
          name,
          power: 'on' as const,
          interfaces: [
            { device: 'public', isPublic: true, receivedBytes: received, sentBytes: sent },
            { device: 'private', isPublic: false, receivedBytes: 10 ** 12, sentBytes: 10 ** 12 },
          ],
          guards: [],
        }));
      },
    }),
  });
  call = createApiClient(world.url);
});
after(() => world[Symbol.asyncDispose]());

const loopDeps = () => ({ db: () => world.database.db, clock: systemClock, reporter: silentReporter });

async function read(): Promise<void> {
  const loop = createReadingLoop({
    ...loopDeps(),
    clusters: world.clusters,
    hypervisors: singleDriver(world.hypervisor),
  });
  assert.equal(await loop.runOnce(), true);
  await loop.stop();
}

async function customerWithServer(name: string) {
  const customer = await world.createCustomer(name);
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  return { ...customer, key, serverId };
}

const monthNow = () => new Date(worldStartMs).toISOString().slice(0, 7);

test('API-2.6, API-4.d: an unsampled current month is zeros that say so, not a 404', async () => {
  const { key, serverId } = await customerWithServer('Unsampled');
  for (const version of ['v1', 'v2']) {
    const { status, body } = await call('GET', `/api/${version}/servers/${serverId}/bandwidth`, { key });
    assert.equal(status, 200);
    assert.equal(body.attribution_only, true);
    assert.deepEqual(body.current, {
      server_id: serverId,
      server_name: 'web-1',
      period: monthNow(),
      period_start: `${monthNow()}-01T00:00:00.000Z`,
      period_end: body.current.period_end,
      inbound_bytes: 0,
      outbound_bytes: 0,
      total_bytes: 0,
      provider_scan_inbound_bytes: 0,
      provider_scan_outbound_bytes: 0,
      attack_inbound_bytes: 0,
      attack_outbound_bytes: 0,
      pool_bytes: 0,
      pool_share: 0,
      sampled: false,
      last_sampled_at: null,
      server_deleted: false,
    });
    assert.deepEqual(body.history, [body.current]);
  }
});

test('API-4.d: use is what the hypervisor’s counters gained, over restarts, and never counted twice', async () => {
  const { key, serverId, tenant } = await customerWithServer('Counters');
  const other = await world.deploy(tenant, 'web-2');
  const guest = `vm-${serverId}`;
  const current = async () =>
    (await call('GET', `/api/v2/servers/${serverId}/bandwidth`, { key })).body.current;
  counters.set(guest, { received: 1_000, sent: 3_000 });
  const beganMs = world.clock.nowMs();
  await read();
  await read();
  const first = await current();
  assert.deepEqual(
    [first.inbound_bytes, first.outbound_bytes, first.total_bytes, first.pool_bytes, first.pool_share],
    [1_000, 3_000, 4_000, 3_000, 1],
  );
  assert.equal(first.sampled, true);
  assert.ok(
    Date.parse(first.last_sampled_at) >= beganMs && Date.parse(first.last_sampled_at) <= world.clock.nowMs(),
  );
  counters.set(guest, { received: 1_500, sent: 3_100 });
  await read();
  // Started anew: the totals begin at zero again.
  counters.set(guest, { received: 20, sent: 10 });
  counters.set(`vm-${other.serverId}`, { received: 0, sent: 9_330 });
  await read();
  const later = await current();
  assert.deepEqual([later.inbound_bytes, later.outbound_bytes, later.pool_share], [1_520, 3_110, 0.25]);
  const { rows } = await world.database.pool.query(
    'select boot, inbound_total::int as total from bandwidth_readings where server_id = $1 order by boot',
    [serverId],
  );
  assert.deepEqual(rows, [
    { boot: 1, total: 1_500 },
    { boot: 2, total: 20 },
  ]);
  counters.clear();
});

test('API-4.d: history by month and day is whole, newest first, and bounded', async () => {
  const { key, serverId, tenant } = await customerWithServer('History');
  await world.database.pool.query(
    "update servers set created_at = created_at - interval '3 months' where id = $1",
    [serverId],
  );
  const before = new Date(worldStartMs);
  before.setUTCDate(1);
  before.setUTCMonth(before.getUTCMonth() - 2);
  const month = before.toISOString().slice(0, 7);
  await world.database.pool.query(
    `insert into bandwidth_days values ($1, $3::date, 'hypervisor', $2, 10, 20, $3::date),
       ($1, $4::date, 'hypervisor', $2, 1, 2, $4::date), ($1, $4::date, 'telemetry', $2, 100, 200, $4::date)`,
    [serverId, tenant.id, `${month}-03`, `${month}-05`],
  );
  const path = `/api/v2/servers/${serverId}/bandwidth`;
  const months = (await call('GET', path, { key })).body.history;
  assert.equal(months.length, 4);
  assert.equal(months[0].period, monthNow());
  assert.deepEqual(
    [months[2].period, months[2].inbound_bytes, months[2].outbound_bytes, months[2].sampled],
    [month, 11, 22, true],
  );
  assert.equal(months[1].sampled, false);
  const days = await call('GET', `${path}?granularity=day&from=${month}&to=${month}-05`, { key });
  assert.deepEqual(
    days.body.history.map((row: { period: string; outbound_bytes: number }) => [
      row.period,
      row.outbound_bytes,
    ]),
    [
      [`${month}-05`, 2],
      [`${month}-04`, 0],
      [`${month}-03`, 20],
      [`${month}-02`, 0],
      [`${month}-01`, 0],
    ],
  );
  assert.equal(days.body.current.period, monthNow());
  for (const query of [
    'from=2025-13',
    'from=x',
    'granularity=hour',
    'from=2099-01',
    'from=2025-03&to=2025-01',
    'form=2025-01',
  ])
    assert.equal((await call('GET', `${path}?${query}`, { key })).status, 422, query);
  assert.equal((await call('GET', `${path}?granularity=day&from=2020-01`, { key })).status, 422);
});

test('API-2.5, API-2.6: port scans by the provider are in what a server used, named, and do not count against the pool', async () => {
  const { key, serverId } = await customerWithServer('Scanned');
  const other = await customerWithServer('Unscanned');
  await world.backdate(serverId, '2 hours');
  counters.set(`vm-${serverId}`, { received: 1_000_000, sent: 600_000 });
  await read();
  counters.clear();
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  const token = await world.createToken(['protect_telemetry_ingest']);
  const own_scan = { inbound_bps: (300_000 * 8) / 60, outbound_bps: (200_000 * 8) / 60 };
  const minute = { in: 500_000, out: 400_000, own_scan };
  await deliverMinutes(world, token, allocation!, [[worldMinuteMs - 5 * 60_000, minute]]);
  const loop = createRollupLoop({ ...loopDeps(), source: 'hypervisor' });
  await loop.runOnce();
  // What retention deletes stays known, and nothing is counted twice.
  await world.database.pool.query('delete from protect_usage_hours');
  await loop.runOnce();
  await loop.stop();
  const { current } = (await call('GET', `/api/v2/servers/${serverId}/bandwidth`, { key })).body;
  assert.deepEqual(
    [current.inbound_bytes, current.outbound_bytes, current.total_bytes],
    [1_000_000, 600_000, 1_600_000],
  );
  assert.deepEqual(
    [current.provider_scan_inbound_bytes, current.provider_scan_outbound_bytes, current.pool_bytes],
    [300_000, 200_000, 400_000],
  );
  const used = async (of: string) => (await call('GET', '/api/v2/account', { key: of })).body.bandwidth;
  assert.equal((await used(key)).used_bytes, 400_000);
  const others = await used(other.key);
  assert.deepEqual([others.used_bytes, others.servers[0].provider_scan_outbound_bytes], [0, 0]);
});

test('API-4.2: another account’s, a destroyed and a nonexistent server’s bandwidth are one 404', async () => {
  const mine = await customerWithServer('Bandwidth mine');
  const theirs = await customerWithServer('Bandwidth theirs');
  await call('DELETE', `/api/v2/servers/${mine.serverId}`, { key: mine.key });
  await world.jobs.drain();
  const answers = [];
  for (const id of [999_999, theirs.serverId, mine.serverId, 'x'])
    answers.push(await call('GET', `/api/v1/servers/${id}/bandwidth?nonsense=1`, { key: mine.key }));
  const texts = answers.map((answer) => answer.text.replaceAll(/req_[0-9A-Z]{26}/g, 'ID'));
  assert.deepEqual(new Set(texts).size, 1);
  assert.equal(answers[0]!.status, 404);
});

test('API-2.5, API-4.e: the account payload has every listed field at its root, with its meaning', async () => {
  const { key, serverId, tenant } = await customerWithServer('Account');
  const { serverId: second } = await world.deploy(tenant, 'web-2');
  const { serverId: gone } = await world.deploy(tenant, 'gone');
  counters.set(`vm-${serverId}`, { received: 0, sent: 3_000_000 });
  counters.set(`vm-${gone}`, { received: 5, sent: 1_000_000 });
  await read();
  counters.clear();
  await call('DELETE', `/api/v2/servers/${gone}`, { key });
  await world.jobs.drain();
  // Fourteen months old, and both servers have run since the month began.
  await world.database.pool.query(
    "update tenants set created_at = created_at - interval '14 months' where id = $1",
    [tenant.id],
  );
  await world.database.pool.query(
    "update servers set provisioned_at = date_trunc('month', svc_now()) where id = any($1)",
    [[serverId, second]],
  );
  for (const version of ['v1', 'v2']) {
    const { status, body } = await call('GET', `/api/${version}/account`, { key });
    assert.equal(status, 200);
    assert.deepEqual(
      [body.id, body.name, body.status, body.currency, body.credit_balance],
      [tenant.id, 'Account', 'active', 'USD', body.credit_balance],
    );
    assert.deepEqual(body.hourly_billing, { eligible: true, reason: null });
    assert.deepEqual(body.limits.servers, { max: null, used: 2 });
    assert.deepEqual(body.limits.networks, { max: 10, used: 0 });
    assert.deepEqual(body.limits.keys, { max: 25, used: 1 });
    assert.deepEqual(body.limits.deploys_per_hour, { max: 1_000, used: 3 });
    assert.equal(body.base_allowance_tb, 1);
    assert.equal(body.tenure_bonus_tb, 0.1);
    assert.equal(body.free_allowance_tb, 1.1);
    assert.equal(body.extra_per_additional_server_gb, 500);
    assert.equal(body.extra_server_allowance_tb, body.instance_earned_tb);
    const monthMs = Date.parse(body.reset_at) - Date.parse(`${body.bandwidth.period}-01T00:00:00Z`);
    const elapsed = (world.clock.nowMs() - Date.parse(`${body.bandwidth.period}-01T00:00:00Z`)) / monthMs;
    assert.ok(Math.abs(body.instance_earned_tb - 0.5 * elapsed) < 0.001, 'one additional server so far');
    assert.ok(Math.abs(body.instance_potential_tb - 0.5 * (1 - elapsed)) < 0.001, 'and for the rest');
    const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 0.00001, `${a} ${b}`);
    near(body.allowance_tb, body.free_allowance_tb + body.instance_earned_tb);
    near(body.potential_allowance_tb, body.allowance_tb + body.instance_potential_tb);
    assert.equal(body.instance_remaining_tb, body.instance_earned_tb);
    assert.equal(body.bandwidth.used_bytes, 4_000_000);
    assert.equal(body.bandwidth.tb_bytes, 10 ** 12);
    assert.deepEqual(
      body.bandwidth.servers.map((row: Record<string, unknown>) => [
        row.server_id,
        row.pool_bytes,
        row.pool_share,
        row.sampled,
        row.server_deleted,
      ]),
      [
        [serverId, 3_000_000, 0.75, true, false],
        [second, 0, 0, false, false],
        [gone, 1_000_000, 0.25, true, true],
      ],
    );
    assert.equal(body.api_usage.period, monthNow());
  }
  assert.equal(
    (await call('GET', '/api/v1/account', { key, headers: { 'x-tenant-id': '999' } })).body.id,
    tenant.id,
  );
  const read2 = await call('GET', '/api/v2/account', { key });
  assert.equal(read2.body.api_usage.count, Number(read2.headers.get('x-api-quota-used')));
});

test('API-4.d: with telemetry as the source, days are the sum of the minutes, and late minutes count', async () => {
  await using telemetry = await createWorld({ bandwidthSource: 'telemetry' });
  const customer = await telemetry.createCustomer('Telemetry');
  const key = await telemetry.createKey(customer);
  const { serverId, allocations } = await telemetry.deploy(customer.tenant, 'web');
  const [first, second] = allocations;
  const { pool, db } = telemetry.database;
  for (const allocation of [first!, second!])
    await pool.query(
      'insert into protect_series (allocation_id, tenant_id, server_id, address, source_site_id) values ($1, $2, $3, $4, 1)',
      [allocation.id, customer.tenant.id, serverId, allocation.address],
    );
  const insert = (allocationId: number, minutesAgo: number, bytes: number) =>
    pool.query(
      `insert into protect_minutes (allocation_id, minute, inbound_bytes, outbound_bytes, applications)
       values ($1, date_trunc('minute', svc_now()) - make_interval(mins => $2), $3, $4, '[]')`,
      [allocationId, minutesAgo, bytes, bytes * 2],
    );
  await insert(first!.id, 1, 100);
  await insert(second!.id, 1, 10);
  const loop = createRollupLoop({
    ...{ db: () => db, clock: systemClock, reporter: silentReporter, source: 'telemetry' },
  });
  const client = createApiClient(telemetry.url);
  const current = async () =>
    (await client('GET', `/api/v2/servers/${serverId}/bandwidth`, { key })).body.current;
  await loop.runOnce();
  await loop.runOnce();
  assert.deepEqual([(await current()).inbound_bytes, (await current()).outbound_bytes], [110, 220]);
  await insert(first!.id, 2, 1_000);
  await loop.runOnce();
  assert.equal((await current()).inbound_bytes, 1_110);
  // What retention deletes stays counted.
  await pool.query('delete from protect_minutes');
  await loop.runOnce();
  assert.equal((await current()).inbound_bytes, 1_110);
  await loop.stop();
  assert.equal(
    (
      await telemetry.bandwidth.readAccount(systemActor, {
        tenantId: customer.tenant.id,
        openedAt: new Date(worldStartMs),
      })
    ).pool.usedBytes,
    2_220,
  );
});
