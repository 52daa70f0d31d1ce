/** Statements on readings and daily use. Owners are filtered here. */
import { sql } from 'kysely';
import { lockLiving } from '#operations/servers/index.ts';
import { attackDays, observedDays, ownScanDays, wantedSpeeds } from '#operations/views/bandwidth-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { BandwidthTerms, MonthFigures } from './overage.ts';
import type { DayUse, StoredReading } from './reading.ts';

/** What an account chose for when its pool is used up. */
export type WhenUsedUp = 'charge' | 'limit';

export interface MeasuredServer {
  serverId: number;
  tenantId: number;
  /** From when on it can have used anything. */
  sinceMs: number;
  before: StoredReading | null;
}

/** Those of the servers that live, with their newest reading, locked: two writers of one server wait for one another. */
export async function lockMeasured(tx: Queryable, serverIds: readonly number[]): Promise<MeasuredServer[]> {
  const servers = await lockLiving(tx, 'all', serverIds);
  // Read once the rows are locked: the locking statement could still see the reading before the last one.
  const { rows } = await sql<StoredTotals>`
    select distinct on (server_id) server_id, boot, inbound_total, outbound_total, read_at
    from bandwidth_readings where server_id = any(${servers.map(({ id }) => id)}::bigint[])
    order by server_id, boot desc`.execute(tx);
  const newest = new Map(
    rows.map(({ serverId, readAt, ...totals }) => [serverId, { ...totals, readAtMs: readAt.getTime() }]),
  );
  return servers.map(({ id, tenantId, since }) => ({
    serverId: id,
    tenantId,
    sinceMs: since.getTime(),
    before: newest.get(id) ?? null,
  }));
}

interface StoredTotals {
  serverId: number;
  boot: number;
  inboundTotal: number;
  outboundTotal: number;
  readAt: Date;
}

export async function putReading(tx: Queryable, serverId: number, reading: StoredReading): Promise<void> {
  await sql`insert into bandwidth_readings (server_id, boot, inbound_total, outbound_total, read_at)
    values (${serverId}, ${reading.boot}, ${reading.inboundTotal}, ${reading.outboundTotal},
      ${new Date(reading.readAtMs)})
    on conflict (server_id, boot) do update set inbound_total = excluded.inbound_total,
      outbound_total = excluded.outbound_total, read_at = excluded.read_at`.execute(tx);
}

/** Adds to what the hypervisor's counters have shown of a day. */
export async function addToDay(
  tx: Queryable,
  server: { serverId: number; tenantId: number },
  use: DayUse,
  sampledAtMs: number,
): Promise<void> {
  await sql`insert into bandwidth_days as kept
      (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
    values (${server.serverId}, ${use.day}, 'hypervisor', ${server.tenantId}, ${use.inboundBytes},
      ${use.outboundBytes}, ${new Date(sampledAtMs)})
    on conflict (server_id, day, source) do update set
      inbound_bytes = kept.inbound_bytes + excluded.inbound_bytes,
      outbound_bytes = kept.outbound_bytes + excluded.outbound_bytes,
      last_sampled_at = greatest(kept.last_sampled_at, excluded.last_sampled_at)`.execute(tx);
}

/**
 * Brings the days since `fromMs` up to what the stored minutes say. Computed anew each time, so it may run any number of
 * times; minutes that were deleted by retention never make a day smaller.
 */
export async function rollMinutes(tx: Queryable, fromMs: number): Promise<void> {
  await sql`insert into bandwidth_days as kept
      (server_id, day, source, tenant_id, inbound_bytes, outbound_bytes, last_sampled_at)
    select server_id, day, 'telemetry', tenant_id, inbound_bytes, outbound_bytes, last_sampled_at
    from (${observedDays(fromMs)}) observed
    where true
    on conflict (server_id, day, source) do update set
      inbound_bytes = greatest(kept.inbound_bytes, excluded.inbound_bytes),
      outbound_bytes = greatest(kept.outbound_bytes, excluded.outbound_bytes),
      last_sampled_at = greatest(kept.last_sampled_at, excluded.last_sampled_at)`.execute(tx);
}

/** The same of what the provider's own port scans caused, whichever source says what was used. */
export async function rollOwnScans(tx: Queryable, fromMs: number): Promise<void> {
  await sql`insert into bandwidth_own_scans as kept (server_id, day, inbound_bytes, outbound_bytes)
    select server_id, day, inbound_bytes, outbound_bytes from (${ownScanDays(fromMs)}) observed
    where true
    on conflict (server_id, day) do update set
      inbound_bytes = greatest(kept.inbound_bytes, excluded.inbound_bytes),
      outbound_bytes = greatest(kept.outbound_bytes, excluded.outbound_bytes)`.execute(tx);
}

/** The same of what attacks on and from servers were. */
export async function rollAttacks(tx: Queryable, fromMs: number): Promise<void> {
  await sql`insert into bandwidth_attacks as kept (server_id, day, inbound_bytes, outbound_bytes)
    select server_id, day, inbound_bytes, outbound_bytes from (${attackDays(fromMs)}) observed
    where true
    on conflict (server_id, day) do update set
      inbound_bytes = greatest(kept.inbound_bytes, excluded.inbound_bytes),
      outbound_bytes = greatest(kept.outbound_bytes, excluded.outbound_bytes)`.execute(tx);
}

const presentMonth = sql`date_trunc('month', svc_now() at time zone 'utc')::date`;

/**
 * Notes the terms of the month that runs. Of terms that change within it the better ones for the customer hold, and the first month that is
 * noted costs nothing: a price is never for what was used before it was known.
 */
export async function noteTerms(
  db: Queryable,
  { tbQuanta, poolCounts, rules }: Omit<BandwidthTerms, 'period'>,
): Promise<void> {
  await sql`insert into bandwidth_terms as kept
      (month, tb_quanta, counts, base_bytes, per_server_bytes, tenure_year_bytes, tenure_max_bytes)
    values (${presentMonth},
      case when exists (select from bandwidth_terms where month < ${presentMonth}) then ${tbQuanta}::bigint else 0 end,
      ${poolCounts}, ${rules.baseBytes}, ${rules.perServerBytes}, ${rules.tenureYearBytes}, ${rules.tenureBytesMax})
    on conflict (month) do update set tb_quanta = least(kept.tb_quanta, excluded.tb_quanta),
      counts = least(kept.counts, excluded.counts), base_bytes = greatest(kept.base_bytes, excluded.base_bytes),
      per_server_bytes = greatest(kept.per_server_bytes, excluded.per_server_bytes),
      tenure_year_bytes = greatest(kept.tenure_year_bytes, excluded.tenure_year_bytes),
      tenure_max_bytes = greatest(kept.tenure_max_bytes, excluded.tenure_max_bytes)
    where kept.settled_at is null and (kept.tb_quanta > excluded.tb_quanta or kept.counts > excluded.counts
      or kept.base_bytes < excluded.base_bytes or kept.per_server_bytes < excluded.per_server_bytes
      or kept.tenure_year_bytes < excluded.tenure_year_bytes or kept.tenure_max_bytes < excluded.tenure_max_bytes)`.execute(
    db,
  );
}

const termsColumns = sql`
  to_char(month, 'YYYY-MM') as period, tb_quanta, counts as pool_counts,
  json_build_object('baseBytes', base_bytes, 'perServerBytes', per_server_bytes,
    'tenureYearBytes', tenure_year_bytes, 'tenureBytesMax', tenure_max_bytes) as rules`;

/** Of the present month; null before they are noted. */
export async function findTerms(db: Queryable): Promise<BandwidthTerms | null> {
  const { rows } = await sql<BandwidthTerms>`
    select ${termsColumns} from bandwidth_terms where month = ${presentMonth}`.execute(db);
  return rows[0] ?? null;
}

/** Months that have been over for so many days and are not settled. */
export async function listDueMonths(db: Queryable, days: number): Promise<BandwidthTerms[]> {
  const { rows } = await sql<BandwidthTerms>`
    select ${termsColumns} from bandwidth_terms where settled_at is null
      and (month + interval '1 month' + make_interval(days => ${days})) at time zone 'utc' <= svc_now()
    order by month`.execute(db);
  return rows;
}

export async function settleMonth(db: Queryable, period: string): Promise<void> {
  await sql`update bandwidth_terms set settled_at = svc_now()
    where month = to_date(${period}, 'YYYY-MM') and settled_at is null`.execute(db);
}

/** Writes an account's month down, once: false when it stands already. */
export async function settleAccount(
  tx: Queryable,
  tenantId: number,
  period: string,
  { usedBytes, allowanceBytes, quanta }: MonthFigures,
): Promise<boolean> {
  const { rows } = await sql`
    insert into bandwidth_months as kept (tenant_id, month, used_bytes, allowance_bytes, charged_quanta, settled_at)
    values (${tenantId}, to_date(${period}, 'YYYY-MM'), ${usedBytes}, ${allowanceBytes}, ${quanta}, svc_now())
    on conflict (tenant_id, month) do update set used_bytes = excluded.used_bytes,
      allowance_bytes = excluded.allowance_bytes, charged_quanta = excluded.charged_quanta, settled_at = excluded.settled_at
    where kept.settled_at is null returning 1`.execute(tx);
  return rows.length === 1;
}

/** Beyond the pool, in a month: by what an account chose for it. */
export interface UsedUpChoice {
  whenUsedUp: WhenUsedUp;
  /** Beyond the pool when it was chosen. */
  sinceBytes: number;
  /** Used beyond the pool while an earlier choice of the month was the limit. */
  freeBytes: number;
}

/** What holds in this month; a choice of an earlier one holds from the beginning. */
export async function findChoice(db: Queryable, tenantId: number, period: string): Promise<UsedUpChoice> {
  const { rows } = await sql<UsedUpChoice>`
    select when_used_up,
      case when month = to_date(${period}, 'YYYY-MM') then since_bytes else 0 end as since_bytes,
      case when month = to_date(${period}, 'YYYY-MM') then free_bytes else 0 end as free_bytes
    from bandwidth_choices where tenant_id = ${tenantId} and month <= to_date(${period}, 'YYYY-MM')
    order by month desc limit 1`.execute(db);
  return rows[0] ?? { whenUsedUp: 'charge', sinceBytes: 0, freeBytes: 0 };
}

/** For the present month. Ends the limit of its servers, which begins anew where it is still due. */
export async function putChoice(tx: Queryable, tenantId: number, choice: UsedUpChoice): Promise<void> {
  await sql`insert into bandwidth_choices (tenant_id, month, when_used_up, since_bytes, free_bytes)
    values (${tenantId}, ${presentMonth}, ${choice.whenUsedUp}, ${choice.sinceBytes}, ${choice.freeBytes})
    on conflict (tenant_id, month) do update set when_used_up = excluded.when_used_up,
      since_bytes = excluded.since_bytes, free_bytes = excluded.free_bytes`.execute(tx);
  await sql`update bandwidth_months set limited_at = null
    where tenant_id = ${tenantId} and month = ${presentMonth}`.execute(tx);
}

/** From when on the account's servers are limited in the present month; null: they are not. */
export async function findLimitedAt(db: Queryable, tenantId: number): Promise<Date | null> {
  const { rows } = await sql<{ limitedAt: Date | null }>`
    select limited_at from bandwidth_months
    where tenant_id = ${tenantId} and month = ${presentMonth}`.execute(db);
  return rows[0]?.limitedAt ?? null;
}

/** Limits the account until the present month ends; false when it is limited already. */
export async function noteLimited(tx: Queryable, tenantId: number): Promise<boolean> {
  const { rows } = await sql`
    insert into bandwidth_months as kept (tenant_id, month, limited_at) values (${tenantId}, ${presentMonth}, svc_now())
    on conflict (tenant_id, month) do update set limited_at = excluded.limited_at where kept.limited_at is null
    returning 1`.execute(tx);
  return rows.length === 1;
}

/**
 * Notes that the hypervisors are asked to limit these servers, or to end that, and returns their ids: those whose confirmed speed is another
 * one, and whose hypervisors were not asked within ten minutes without an answer.
 */
export async function askForSpeeds(tx: Queryable, limitMbit: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    insert into server_speeds as kept (server_id, asked_at)
    select wanted.id, svc_now() from (${wantedSpeeds(limitMbit)}) wanted
    left join server_speeds v on v.server_id = wanted.id
    where wanted.mbit is distinct from v.mbit
      and (v.asked_at is null or v.asked_at < svc_now() - interval '10 minutes')
    on conflict (server_id) do update set asked_at = excluded.asked_at
    returning server_id as id`.execute(tx);
  return rows.map(({ id }) => id);
}

/** The speed that a server is to have, null for no limit; undefined for one that is no longer there. */
export async function findWantedSpeed(
  db: Queryable,
  serverId: number,
  limitMbit: number,
): Promise<number | null | undefined> {
  const { rows } = await sql<{ mbit: number | null }>`
    select wanted.mbit from (${wantedSpeeds(limitMbit)}) wanted where wanted.id = ${serverId}`.execute(db);
  return rows[0]?.mbit;
}

export async function noteSpeed(db: Queryable, serverId: number, mbit: number | null): Promise<void> {
  await sql`update server_speeds set mbit = ${mbit}, asked_at = null where server_id = ${serverId}`.execute(
    db,
  );
}

/** Raises the share of the pool that an account was notified about in the present month; the former one, or null when it is not lower. */
export async function noteTold(tx: Queryable, tenantId: number, percent: number): Promise<number | null> {
  await sql`insert into bandwidth_months (tenant_id, month) values (${tenantId}, ${presentMonth})
    on conflict do nothing`.execute(tx);
  const { rows } = await sql<{ before: number }>`
    update bandwidth_months m set told_percent = ${percent}
    from (select told_percent as before from bandwidth_months
      where tenant_id = ${tenantId} and month = ${presentMonth} for update) held
    where m.tenant_id = ${tenantId} and m.month = ${presentMonth} and held.before < ${percent}
    returning held.before`.execute(tx);
  return rows[0]?.before ?? null;
}
