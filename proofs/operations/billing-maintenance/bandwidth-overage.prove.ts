/**
 * `npm run prove -- bandwidth-overage`: N accounts over five months, with minutes and incidents that come in time, late and too late, attacks
 * with and without an incident, spoofed bytes in the counters of hypervisors, own port scans, a database's clock that steps back and ahead,
 * workers that charge at once, accounts that are locked, and workers that die at any step. Some accounts chose a limit of their speed instead of
 * a charge, for all months or within each. What the ledger has at the end is held against a
 * sum that is made from the same minutes here: each month of an account is charged once, and never for what was not delivered.
 */
import fc from 'fast-check';
import { sql } from 'kysely';
import { systemActor } from '#operations/accounts/index.ts';
import type { Bandwidth } from '#operations/bandwidth/index.ts';
import { rollAttacks, rollMinutes, rollOwnScans } from '#operations/bandwidth/store.ts';
import { chargeBandwidth } from '#operations/billing-maintenance/charge-bandwidth.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { moveWorldClock, worldMinuteMs, worldStartMs } from '#operations/testing/world-time.ts';

export const name = 'bandwidth-overage';

const gigabyte = 1_000_000_000;
const [tbQuanta, poolGb] = [37_123, 2];
const dayMs = 86_400_000;
/** The world begins in the first, which is free. In the last one the clock steps 40 days ahead and back. */
const months = [5, 6, 7, 8, 9] as const;

type Attack = 'none' | 'inbound' | 'outbound' | 'both' | 'without an incident';
type Arrival = 'in time' | 'late' | 'too late';

interface Minute {
  account: number;
  month: number;
  atMs: number;
  inbound: number;
  outbound: number;
  ownScan: number;
  attackBytes: number;
  attack: Attack;
  arrival: Arrival;
}

const minutesOf = (accounts: number, month: number): fc.Arbitrary<Minute[]> =>
  fc.array(
    fc
      .record({
        account: fc.nat(accounts - 1),
        minute: fc.nat(27 * 1440),
        inbound: fc.nat(3 * gigabyte),
        outbound: fc.nat(3 * gigabyte),
        ownScan: fc.oneof(fc.constant(0), fc.nat(gigabyte)),
        attackBytes: fc.nat(4 * gigabyte),
        attack: fc.constantFrom<Attack>('none', 'none', 'inbound', 'outbound', 'both', 'without an incident'),
        arrival: fc.constantFrom<Arrival>('in time', 'in time', 'in time', 'late', 'too late'),
      })
      .map(({ minute, ...rest }) => ({
        ...rest,
        month,
        ownScan: Math.min(rest.ownScan, rest.outbound),
        attackBytes: rest.attack === 'none' ? 0 : rest.attackBytes,
        atMs: Date.UTC(2027, month, 1) + minute * 60_000,
      })),
    { minLength: accounts * 2, maxLength: accounts * 3, size: 'max' },
  );

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const accounts = Math.max(4, options.n);
  await using world = await createWorld({
    bandwidthSource: 'telemetry',
    bandwidthOverageQuanta: tbQuanta,
    bandwidthBaseGb: poolGb,
    bandwidthTenureYearGb: 0,
    bandwidthLimitMbit: 10,
  });
  const firstAllocation = await addAccounts(world, accounts);
  const random = fc.sample(fc.noShrink(fc.nat(1_000_000)), { numRuns: 400, seed: options.seed });
  const setting: Setting = { world, accounts, firstAllocation, draw: () => random.pop() ?? 7, kills: 0 };
  const expected = new Map<string, number>();
  for (const month of months) {
    const [minutes] = fc.sample(minutesOf(accounts, month), { numRuns: 1, seed: options.seed + month });
    await runMonth(setting, month, onePerMinute(minutes!), expected);
  }
  const faults = await compare(world, expected);
  for (const fault of faults.slice(0, 10)) options.report(fault);
  options.report(`${expected.size} charges of ${accounts} accounts; ${setting.kills} workers died`);
  return {
    claim: 'a month of an account is charged once, by what was delivered',
    tried: accounts,
    failures: faults.length,
  };
}

interface Setting {
  world: World;
  accounts: number;
  /** Account i has the i-th generation and the i-th tenant after the first ones. */
  firstAllocation: { id: number; tenantId: number };
  draw: () => number;
  kills: number;
}

/** A generation has one row for a minute. */
function onePerMinute(minutes: readonly Minute[]): Minute[] {
  return [...new Map(minutes.map((one) => [`${one.account} ${one.atMs}`, one])).values()];
}

async function runMonth(
  setting: Setting,
  month: number,
  minutes: readonly Minute[],
  expected: Map<string, number>,
): Promise<void> {
  const isLast = month === months.at(-1);
  const start = Date.UTC(2027, month, 1);
  const end = Date.UTC(2027, month + 1, 1);
  const of = (arrival: Arrival) => minutes.filter((one) => one.arrival === arrival);
  await goTo(setting.world, Math.max(worldStartMs, start + 20 * dayMs));
  await tick(setting, 1);
  await choose(setting, 'changes', 'charge');
  if (month === months[1]) await choose(setting, 'limit', 'limit');
  await deliver(setting, of('in time'));
  await choose(setting, 'changes', 'limit');
  await tick(setting, 1);
  // A clock that is wrong for a while.
  await goTo(setting.world, start + 2 * dayMs - (setting.draw() % 20) * dayMs);
  await tick(setting, 1);
  if (isLast) {
    await goTo(setting.world, end + 40 * dayMs);
    await chargeAll(setting);
    expect(expected, setting, month, of('in time'));
  }
  await goTo(setting.world, end + dayMs);
  await tick(setting, 2);
  await deliver(setting, of('late'));
  await tick(setting, 2);
  await goTo(setting.world, end + 3 * dayMs + 60_000);
  await chargeAll(setting);
  if (!isLast) expect(expected, setting, month, [...of('in time'), ...of('late')]);
  await deliver(setting, of('too late'));
  await tick(setting, 2);
}

/** Dying workers, some accounts locked, workers at once, one with nothing in its way, and one that was paused since before all of them. */
async function chargeAll(setting: Setting): Promise<void> {
  const { world, draw } = setting;
  const due = await world.bandwidth.listDueMonths();
  const listed = new Map(
    await Promise.all(
      due.map(async ({ period }) => [period, await world.bandwidth.listUnsettledAccounts(period)] as const),
    ),
  );
  for (const point of killPoints) await tick(setting, 1, point);
  await world.database.db.transaction().execute(async (tx) => {
    await sql`select 1 from credit_balances where tenant_id % 7 = ${draw() % 7} for update`.execute(tx);
    await tick(setting, 2);
  });
  await tick(setting, 1 + (draw() % 4));
  await tick(setting, 1);
  const paused = {
    ...world.bandwidth,
    listDueMonths: async () => due,
    listUnsettledAccounts: async (period: string) => listed.get(period)!,
  };
  await chargeBandwidth({ db: () => world.database.db, bandwidth: paused });
}

/** What account i chose: a fifth of them the limit from the second month on, a fifth in each month anew once the first minutes are in. */
const choiceOf = (account: number) =>
  (['limit', 'changes', 'charge', 'charge', 'charge'] as const)[account % 5]!;

async function choose(
  { world, accounts, firstAllocation }: Setting,
  of: 'limit' | 'changes',
  whenUsedUp: 'charge' | 'limit',
): Promise<void> {
  for (let account = 0; account < accounts; account += 1)
    if (choiceOf(account) === of)
      await world.bandwidth.chooseWhenUsedUp(
        systemActor,
        { tenantId: firstAllocation.tenantId + account, openedAt: new Date(worldStartMs) },
        whenUsedUp,
      );
}

const goTo = (world: World, ms: number) =>
  moveWorldClock(world.database, `${Math.round((ms - worldStartMs) / 1000)} seconds`);

const killPoints = ['terms', 'account', 'entry', 'month'] as const;

async function tick(
  setting: Setting,
  workers: number,
  dieAt: (typeof killPoints)[number] | null = null,
): Promise<void> {
  const { world } = setting;
  const after = setting.draw() % 30;
  const work = () =>
    chargeBandwidth({ db: () => world.database.db, bandwidth: dying(world.bandwidth, dieAt, after) });
  await Promise.all(Array.from({ length: workers }, work)).catch((error) => {
    if ((error as Error).message !== 'killed') throw error;
    setting.kills += 1;
  });
}

/** A process that dies leaves what a thrown error leaves: a transaction that never commits. */
function dying(bandwidth: Bandwidth, at: (typeof killPoints)[number] | null, after: number): Bandwidth {
  let left = after;
  const die = (point: (typeof killPoints)[number]) => {
    if (point === at && (point === 'terms' || point === 'month' || left-- <= 0)) throw new Error('killed');
  };
  return {
    ...bandwidth,
    async noteTerms() {
      await bandwidth.noteTerms();
      die('terms');
    },
    async settleAccount(...given) {
      die('account');
      const figures = await bandwidth.settleAccount(...given);
      die('entry');
      return figures;
    },
    async settleMonth(period) {
      die('month');
      await bandwidth.settleMonth(period);
    },
  };
}

/** What the minutes cost, made from them alone. */
function expect(
  expected: Map<string, number>,
  { firstAllocation }: Setting,
  month: number,
  minutes: readonly Minute[],
): void {
  if (month === months[0]) return;
  for (const [account, own] of Map.groupBy(minutes, (one) => one.account)) {
    const choice = choiceOf(account);
    if (choice === 'limit') continue;
    const charged = choice === 'changes' ? own.filter(({ arrival }) => arrival === 'in time') : own;
    const used = charged.reduce((sum, one) => sum + countedOf(one), 0);
    const quanta = Number((BigInt(Math.max(0, used - poolGb * gigabyte)) * BigInt(tbQuanta)) / 10n ** 12n);
    const period = new Date(Date.UTC(2027, month)).toISOString().slice(0, 7);
    if (quanta > 0) expected.set(`${firstAllocation.tenantId + account} ${period}`, quanta);
  }
}

function countedOf({ outbound, ownScan, attackBytes, attack }: Minute): number {
  const delivered = outbound - ownScan;
  const isLeftOut = attack === 'outbound' || attack === 'both';
  return delivered - (isLeftOut ? Math.min(attackBytes, delivered) : 0);
}

async function compare(world: World, expected: ReadonlyMap<string, number>): Promise<string[]> {
  const { rows } = await world.database.pool.query<{ place: string; quanta: number; count: number }>(
    `select tenant_id || ' ' || (metadata ->> 'period') as place, -sum(amount_quanta)::bigint as quanta, count(*)::int as count
     from ledger_entries where metadata ->> 'source' = 'bandwidth_overage' group by 1`,
  );
  const charged = new Map(rows.map(({ place, quanta }) => [place, quanta]));
  return [
    ...rows.filter(({ count }) => count > 1).map(({ place, count }) => `${place}: charged ${count} times`),
    ...[...new Set([...expected.keys(), ...charged.keys()])]
      .filter((place) => charged.get(place) !== expected.get(place))
      .map((place) => `${place}: charged ${charged.get(place) ?? 0}, owed ${expected.get(place) ?? 0}`),
  ];
}

/** Accounts with a server and a series each, as copies of one that came about in the usual way. */
async function addAccounts(world: World, accounts: number): Promise<{ id: number; tenantId: number }> {
  const { tenant } = await world.createCustomer('Bandwidth proof');
  const { serverId } = await world.deploy(tenant, 'proof');
  const token = await world.createToken(['protect_telemetry_ingest']);
  await world.backdate(serverId, '2 hours');
  const [fresh] = await world.addresses.listAllocationsOfServers([serverId]);
  await deliverMinutes(world, token, fresh!, [[worldMinuteMs - 3_600_000, { in: 0, out: 0 }]]);
  const base = 1_000_000;
  const copy = (table: string, where: string, changes: string, count = accounts) =>
    world.database.pool.query(
      `insert into ${table} overriding system value
       select (jsonb_populate_record(null::${table}, to_jsonb(t) || jsonb_build_object(${changes}))).*
       from ${table} t, generate_series(0, ${count - 1}) i where ${where}`,
    );
  const order = `(select order_id from servers where id = ${serverId})`;
  await copy('tenants', `t.id = ${tenant.id}`, `'id', ${base} + i, 'slug', 'proof-' || i, 'is_payer', false`);
  await copy('server_orders', `t.id = ${order}`, `'id', ${base} + i, 'tenant_id', ${base} + i`);
  await copy(
    'servers',
    `t.id = ${serverId}`,
    `'id', ${base} + i, 'tenant_id', ${base} + i, 'order_id', ${base} + i`,
  );
  const address = `host('10.64.0.0'::inet + i)`;
  await copy(
    'allocations',
    `t.id = ${fresh!.id}`,
    `'id', ${base} + i, 'tenant_id', ${base} + i, 'server_id', ${base} + i, 'address', ${address}`,
  );
  await copy(
    'protect_series',
    `t.allocation_id = ${fresh!.id}`,
    `'allocation_id', ${base} + i, 'tenant_id', ${base} + i, 'server_id', ${base} + i, 'address', ${address}`,
  );
  return { id: base, tenantId: base };
}

/** Stores minutes, incidents and what hypervisors counted, as their feeds do, and adds them up to days. */
async function deliver({ world, firstAllocation: { id } }: Setting, minutes: readonly Minute[]) {
  const { pool, db } = world.database;
  const given = JSON.stringify(
    minutes.map((one) => ({ ...one, id: id + one.account, at: new Date(one.atMs).toISOString() })),
  );
  const rows = `from jsonb_to_recordset($1::jsonb) as g (id bigint, at timestamptz, inbound bigint, outbound bigint,
    "ownScan" bigint, "attackBytes" bigint, attack text)`;
  await pool.query(
    `insert into protect_minutes (allocation_id, minute, inbound_bytes, outbound_bytes, inbound_bps, outbound_bps, ddos_bps,
       own_scan_inbound_bytes, own_scan_outbound_bytes, applications)
     select id, at, inbound, outbound, inbound * 8.0 / 60, outbound * 8.0 / 60, "attackBytes" * 8.0 / 60, 0, "ownScan", '[]' ${rows}`,
    [given],
  );
  await pool.query(
    `insert into protect_usage_hours as kept (allocation_id, at, inbound_bytes, outbound_bytes, inbound_minutes, outbound_minutes,
       own_scan_outbound_bytes)
     select id, date_bin('1 hour', at, 'epoch'), 0, 0, 0, 0, sum("ownScan") ${rows} group by 1, 2
     on conflict (allocation_id, at) do update set own_scan_outbound_bytes = kept.own_scan_outbound_bytes + excluded.own_scan_outbound_bytes`,
    [given],
  );
  await pool.query(
    `insert into protect_incidents (incident_id, project_id, source_site_id, allocation_id, tenant_id, server_id, address, revision,
       direction, class, severity, vectors, state, started_at, detected_at, last_observed_at, recovered_at, peak_bps, peak_bps_at,
       peak_pps, peak_pps_at, total_bytes, total_packets, coverage, is_drill, actions)
     select gen_random_uuid(), (select min(id) from admin_projects), 1, id, id, id, host('10.64.0.0'::inet + (id - ${id})), 1,
       direction, 'udp_flood', 'attack', '[]', 'recovered', at + interval '1 second', at + interval '4 seconds',
       at + interval '50 seconds', at + interval '50 seconds', 1, at, 1, at, "attackBytes", 1, 'complete', false, '[]'
     ${rows}, unnest(case attack when 'both' then array['inbound', 'outbound'] when 'inbound' then array['inbound']
       when 'outbound' then array['outbound'] else '{}'::text[] end) as direction`,
    [given],
  );
  // The guard drops spoofed packets after the hypervisor has counted them, on days with minutes and on one without.
  await pool.query(
    `insert into bandwidth_days (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
     select id, day::date, 'hypervisor', id, 0, 100 * outbound + 7e12::bigint, at
     ${rows}, unnest(array[at at time zone 'utc', date_trunc('month', at at time zone 'utc') + interval '27 days']) as day
     on conflict do nothing`,
    [given],
  );
  await db.transaction().execute(async (tx) => {
    await rollMinutes(tx, worldStartMs - 60 * dayMs);
    await rollOwnScans(tx, worldStartMs - 60 * dayMs);
    await rollAttacks(tx, worldStartMs - 60 * dayMs);
  });
}
