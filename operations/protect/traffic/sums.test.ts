/** Sums beside minutes: they say the same in every order of deliveries, repeated and changed ones included. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { type DeliveredMinute, deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { sumMinutes } from '#operations/testing/sum-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

let world: World;
let token: string;
before(async () => {
  world = await createWorld();
  token = await world.createToken(['protect_telemetry_ingest']);
});
after(() => world[Symbol.asyncDispose]());

const minuteMs = 60_000;
const startedMs = worldMinuteMs;
const ago = (minutes: number) => startedMs - minutes * minuteMs;

/** Numbers that look random and are the same in every run. */
function createNumbers(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function someMinute(below: (most: number) => number): DeliveredMinute {
  if (below(8) === 0) return { in: null, out: null, coverage: 0, reason: 'sensor_down' };
  const names = Array.from({ length: below(4) }, (_, i) => `app-${i}.example`);
  const [inbound, outbound] = [below(9) === 0 ? null : below(1_000_000), below(1_000_000)];
  const part = (bytes: number | null) => (below((bytes ?? 0) + 1) * 8) / 60;
  return {
    ...{ in: inbound, out: outbound },
    ...(below(3) === 0 && { own_scan: { inbound_bps: part(inbound), outbound_bps: part(outbound) } }),
    pps: below(6) === 0 ? null : below(50_000) / 60,
    coverage: 1,
    applications: names.map((name, i) => ({
      ...{ name, transport: i === 2 ? null : 'tcp', server_port: i === 1 ? null : 443 },
      ...{ inbound_bytes: below(9_000), outbound_bytes: below(3) * 500 },
    })),
  };
}

async function readSums() {
  const read = async (text: string) => (await world.database.pool.query(text)).rows;
  // A bucket that lost its last observed minute stays as a row of nothing.
  const usage = (table: string) =>
    read(`select allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes::text, outbound_minutes::text,
        packets, packet_minutes::text, own_scan_inbound_bytes, own_scan_outbound_bytes
      from ${table} where inbound_minutes <> 0 or outbound_minutes <> 0 order by 1, 2`);
  return {
    tens: await usage('protect_usage_tens'),
    hours: await usage('protect_usage_hours'),
    applications: await read('select * from protect_application_hours order by 1, 2, 3, 4, 5'),
  };
}

async function createServer(name: string) {
  const { tenant, email } = await world.createCustomer(name);
  const { serverId } = await world.deploy(tenant, name);
  await world.backdate(serverId, '5 days');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  return { tenant, email, serverId, allocations: allocations as [Allocation, Allocation] };
}

test('sums of ten minutes, hours and applications are those of the minutes: new, repeated, late and changed ones', async () => {
  const { allocations } = await createServer('summed');
  const below = createNumbers(7);
  for (let round = 0; round < 6; round += 1) {
    for (const of of allocations) {
      const first = below(200);
      const minutes = Array.from(
        { length: 1 + below(90) },
        (_, i) => [ago(2 + first + i), someMinute(below)] as const,
      );
      await deliverMinutes(world, token, of, minutes);
    }
    const kept = await readSums();
    assert.ok(kept.tens.length > 2 && kept.hours.length > 1 && kept.applications.length > 2);
    await sumMinutes(world.database.db);
    assert.deepEqual(kept, await readSums(), `after round ${round}`);
  }
});

test('the explorer counts for any range, from any sums, what the minutes say', async () => {
  const { allocations, tenant, serverId } = await createServer('counted');
  const below = createNumbers(11);
  for (const of of allocations)
    await deliverMinutes(
      world,
      token,
      of,
      Array.from({ length: 420 }, (_, i) => [ago(2 + i), someMinute(below)] as const),
    );
  const filters = [{ dimension: 'server' as const, is: true, values: [String(serverId)] }];
  for (const [from, to] of [
    [422, 0],
    [300, 7],
    [97, 31],
    [64, 63],
    [185, 121],
  ] as const) {
    const range = { fromMs: ago(from), toMs: ago(to) };
    const { rows } = await world.database.pool.query(
      `select coalesce(sum(inbound_bytes), 0)::bigint as inbound, coalesce(sum(outbound_bytes), 0)::bigint as outbound,
        count(distinct minute) filter (where inbound_bps is not null or outbound_bps is not null)::int as minutes,
        sum(round(pps * 60)) filter (where inbound_bps is not null or outbound_bps is not null)::bigint as packets,
        coalesce(sum(own_scan_inbound_bytes), 0)::bigint as "scanIn", coalesce(sum(own_scan_outbound_bytes), 0)::bigint as "scanOut"
       from protect_minutes join protect_series using (allocation_id) where tenant_id = $1 and minute >= $2 and minute < $3`,
      [tenant.id, new Date(range.fromMs), new Date(range.toMs)],
    );
    for (const stepSeconds of [60, 600, 3600, 7200]) {
      const explored = await world.protectTraffic.explore(systemActor, {
        ...{ ...range, stepSeconds, filters, measure: 'packets' },
      });
      const { apart } = await explored.rank('application', { limit: 5 });
      const scans = apart.find(({ label }) => label.startsWith('Port scans'))?.amount;
      const { whole } = await explored.chart(null, { top: 5, read: 5, isCompared: false });
      const ranking = await explored.rank('server', { limit: 5, hasPercentiles: true });
      const { total, series } = whole;
      const found = {
        inbound: total.inBytes,
        outbound: total.outBytes,
        minutes: series.minutes.reduce((sum, each) => sum + each, 0),
        packets: total.packets,
        ...{ scanIn: scans?.inBytes ?? 0, scanOut: scans?.outBytes ?? 0 },
      };
      assert.deepEqual(found, rows[0], `${from} to ${to} in steps of ${stepSeconds}`);
      const { rows: expected } = await world.database.pool.query<{ rate: number | null; pps: number | null }>(
        `select (sum(round(pps * 60)) / (60.0 * nullif(count(distinct minute) filter (where pps is not null), 0)))::float8 as pps,
           (sum(inbound_bytes) * 8 / (60.0 * nullif(count(distinct minute) filter (where inbound_bps is not null), 0)))::float8 as rate
         from protect_minutes join protect_series using (allocation_id)
         where tenant_id = $1 and minute >= $2 and minute < $3 and (inbound_bps is not null or outbound_bps is not null)
         group by date_bin(make_interval(secs => $4), minute, 'epoch') order by date_bin(make_interval(secs => $4), minute, 'epoch')`,
        [tenant.id, new Date(range.fromMs), new Date(range.toMs), stepSeconds],
      );
      assert.deepEqual(
        series.inBps.map((rate) => rate?.toPrecision(12)),
        expected.map(({ rate }) => rate?.toPrecision(12)),
        'rates are of the minutes in which any address was observed',
      );
      assert.deepEqual(
        series.pps.map((rate) => rate?.toPrecision(12)),
        expected.map(({ pps }) => pps?.toPrecision(12)),
        'and those of packets of the minutes that have packets',
      );
      const [row] = ranking.rows;
      if (row) assert.deepEqual([row.amount.inBytes, row.amount.packets], [rows[0].inbound, rows[0].packets]);
    }
  }
});

test('NET-2.4.4: applications of a range are those of its minutes, where the server itself sent in the last 24 hours', async () => {
  const { allocations, tenant } = await createServer('applied');
  const used = (name: string, inbound: number, outbound: number) => ({
    ...{ name, transport: 'tcp', server_port: 443, inbound_bytes: inbound, outbound_bytes: outbound },
  });
  const [of] = allocations;
  await deliverMinutes(world, token, of, [
    [
      ago(24 * 60 + 20),
      { in: 1, out: 1, applications: [used('old.example', 50, 50), used('again.example', 9, 9)] },
    ],
    [ago(23 * 60), { in: 1, out: 1, applications: [used('kept.example', 0, 7)] }],
    [ago(130), { in: 1, out: 1, applications: [used('old.example', 40, 0), used('again.example', 0, 3)] }],
    [ago(65), { in: 1, out: 1, applications: [used('kept.example', 11, 0), used('scan.example', 900, 0)] }],
    [ago(5), { in: 1, out: 1, applications: [used('kept.example', 20, 5)] }],
  ]);
  const filters = [{ dimension: 'customer' as const, is: true, values: [String(tenant.id)] }];
  const names = async (fromMinutes: number, toMinutes: number) => {
    const range = { fromMs: ago(fromMinutes), toMs: ago(toMinutes), stepSeconds: 60 };
    const explored = await world.protectTraffic.explore(systemActor, { ...range, filters });
    const { rows } = await explored.rank('application', { limit: 9 });
    return rows.map(({ key, amount }) => [key[0]!.label, amount.inBytes, amount.outBytes]);
  };
  assert.deepEqual(await names(140, 0), [
    ['kept.example', 31, 5],
    ['again.example', 0, 3],
  ]);
  assert.deepEqual(await names(66, 64), [['kept.example', 11, 0]]);
  assert.deepEqual(await names(10, 0), [['kept.example', 20, 5]]);
});

test('sums go with their minutes after three months, and those of applications after two days', async () => {
  const { allocations } = await createServer('expired');
  const { pool } = world.database;
  const [of] = allocations;
  await deliverMinutes(world, token, of, [[ago(5), { in: 1, out: 1 }]]);
  for (const [table, rest] of [
    [
      'protect_usage_tens',
      ', inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes) values ($1, $2, 1, 1, 1, 1)',
    ],
    [
      'protect_usage_hours',
      ', inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes) values ($1, $2, 1, 1, 1, 1)',
    ],
    ['protect_application_hours', ", name, inbound_bytes, outbound_bytes) values ($1, $2, 'x', 1, 1)"],
  ])
    for (const days of [1, 3, 100]) {
      const at = new Date(Math.floor(startedMs / 86_400_000 - days) * 86_400_000);
      await pool.query(`insert into ${table} (allocation_id, at${rest}`, [of.id, at]);
    }
  await loopOf(world.protectTraffic, 'operations-traffic-retention').runOnce();
  for (const [table, count] of [
    ['protect_usage_tens', 3],
    ['protect_usage_hours', 3],
    ['protect_application_hours', 1],
  ] as const) {
    const { rows } = await pool.query(
      `select count(*)::int as count from ${table} where allocation_id = $1`,
      [of.id],
    );
    assert.equal(rows[0].count, count, table);
  }
});
