/** Statements on readings and daily use. Owners are filtered here. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ServerLife } from './pool.ts';
import type { DayUse, StoredReading } from './reading.ts';

export type Source = 'hypervisor' | 'telemetry';

export async function readNowMs(db: Queryable): Promise<number> {
  const { rows } = await sql<{ now: Date }>`select svc_now() as now`.execute(db);
  return rows[0]!.now.getTime();
}

export interface MeasuredServer {
  serverId: number;
  tenantId: number;
  /** From when on it can have used anything. */
  sinceMs: number;
  before: StoredReading | null;
}

/** Those of the servers that live, with their newest reading, locked: two writers of one server wait for one another. */
export async function lockMeasured(tx: Queryable, serverIds: readonly number[]): Promise<MeasuredServer[]> {
  const { rows } = await sql<{
    serverId: number;
    tenantId: number;
    since: Date;
    boot: number | null;
    inboundTotal: number | null;
    outboundTotal: number | null;
    readAt: Date | null;
  }>`
    select s.id as "serverId", s.tenant_id as "tenantId", coalesce(s.provisioned_at, s.created_at) as since,
      r.boot, r.inbound_total as "inboundTotal", r.outbound_total as "outboundTotal", r.read_at as "readAt"
    from servers s left join lateral (
      select * from bandwidth_readings r where r.server_id = s.id order by r.boot desc limit 1) r on true
    where s.id = any(${[...serverIds]}::bigint[]) and s.provisioning_state <> 'deleted'
    order by s.id for no key update of s`.execute(tx);
  return rows.map((row) => ({
    serverId: row.serverId,
    tenantId: row.tenantId,
    sinceMs: row.since.getTime(),
    before:
      row.boot === null
        ? null
        : {
            boot: row.boot,
            inboundTotal: row.inboundTotal!,
            outboundTotal: row.outboundTotal!,
            readAtMs: row.readAt!.getTime(),
          },
  }));
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
    select s.server_id, (m.minute at time zone 'utc')::date, 'telemetry', s.tenant_id,
      coalesce(sum(m.inbound_bytes), 0), coalesce(sum(m.outbound_bytes), 0), max(m.minute) + interval '1 minute'
    from protect_minutes m join protect_series s on s.allocation_id = m.allocation_id
    where m.minute >= ${new Date(fromMs)} and (m.inbound_bytes is not null or m.outbound_bytes is not null)
    group by 1, 2, 4
    on conflict (server_id, day, source) do update set
      inbound_bytes = greatest(kept.inbound_bytes, excluded.inbound_bytes),
      outbound_bytes = greatest(kept.outbound_bytes, excluded.outbound_bytes),
      last_sampled_at = greatest(kept.last_sampled_at, excluded.last_sampled_at)`.execute(tx);
}

export interface UseRow {
  serverId: number;
  serverName: string;
  /** As `period` of the query. */
  period: string;
  inboundBytes: number;
  outboundBytes: number;
  lastSampledAt: Date | null;
  isDeleted: boolean;
}

/**
 * Use by server and period of an account, from the first day up to the last one, both included. Of a day that two
 * sources know of, the one that the settings name speaks.
 */
export async function listUse(
  db: Queryable,
  of: { tenantId: number; serverId: number | null },
  range: { fromDay: string; toDay: string },
  by: { granularity: 'month' | 'day'; source: Source },
): Promise<UseRow[]> {
  const format = by.granularity === 'month' ? 'YYYY-MM' : 'YYYY-MM-DD';
  const { rows } = await sql<UseRow>`
    with days as (
      select distinct on (server_id, day) * from bandwidth_days
      where tenant_id = ${of.tenantId} and day between ${range.fromDay} and ${range.toDay}
        and (${of.serverId}::bigint is null or server_id = ${of.serverId})
      order by server_id, day, source = ${by.source} desc)
    select d.server_id as "serverId", s.name as "serverName", to_char(d.day, ${format}) as period,
      sum(d.inbound_bytes)::bigint as "inboundBytes", sum(d.outbound_bytes)::bigint as "outboundBytes",
      max(d.last_sampled_at) as "lastSampledAt", s.provisioning_state = 'deleted' as "isDeleted"
    from days d join servers s on s.id = d.server_id
    group by d.server_id, s.name, s.provisioning_state, 3 order by d.server_id, 3`.execute(db);
  return rows;
}

export interface PoolServer {
  serverId: number;
  name: string;
  createdAt: Date;
  isDeleted: boolean;
  life: ServerLife | null;
}

/** Servers of an account that existed at some time since this moment. */
export async function listServersSince(
  db: Queryable,
  tenantId: number,
  sinceMs: number,
): Promise<PoolServer[]> {
  const { rows } = await sql<{
    serverId: number;
    name: string;
    createdAt: Date;
    isDeleted: boolean;
    from: Date | null;
    to: Date | null;
  }>`
    select id as "serverId", name, created_at as "createdAt", provisioning_state = 'deleted' as "isDeleted",
      provisioned_at as "from", deleted_at as "to"
    from servers where tenant_id = ${tenantId} and (deleted_at is null or deleted_at > ${new Date(sinceMs)})
    order by id`.execute(db);
  return rows.map(({ from, to, ...server }) => ({
    ...server,
    life: from === null ? null : { fromMs: from.getTime(), toMs: to?.getTime() ?? null },
  }));
}

/** A living server of the account, as its history needs it; null for any other. */
export async function findServer(
  db: Queryable,
  tenantId: number | null,
  serverId: number,
): Promise<{ tenantId: number; name: string; createdAt: Date } | null> {
  const { rows } = await sql<{ tenantId: number; name: string; createdAt: Date }>`
    select tenant_id as "tenantId", name, created_at as "createdAt" from servers
    where id = ${serverId} and (${tenantId}::bigint is null or tenant_id = ${tenantId})
      and provisioning_state <> 'deleted'`.execute(db);
  return rows[0] ?? null;
}
