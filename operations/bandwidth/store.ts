/** Statements on readings and daily use. Owners are filtered here. */
import { sql } from 'kysely';
import { lockLiving } from '#operations/servers/index.ts';
import { attackDays, observedDays, ownScanDays } from '#operations/views/bandwidth-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { BandwidthTerms, MonthFigures } from './overage.ts';
import type { DayUse, StoredReading } from './reading.ts';

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
    select distinct on (server_id) server_id as "serverId", boot, inbound_total as "inboundTotal",
      outbound_total as "outboundTotal", read_at as "readAt"
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
  to_char(month, 'YYYY-MM') as period, tb_quanta as "tbQuanta", counts as "poolCounts",
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
