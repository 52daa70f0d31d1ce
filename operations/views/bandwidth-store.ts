/** Traffic of servers, with the servers that have it. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** When a server ran; null: it still does. */
export interface ServerLife {
  fromMs: number;
  toMs: number | null;
}

export type BandwidthSource = 'hypervisor' | 'telemetry';

export interface UseRow {
  serverId: number;
  serverName: string;
  /** As `period` of the query. */
  period: string;
  inboundBytes: number;
  outboundBytes: number;
  /** The part of it that the provider's own port scans caused, as far as the monitor counted it. */
  ownScanInboundBytes: number;
  ownScanOutboundBytes: number;
  /** The part that attacks on it and from it were, as far as the monitor told them apart. */
  attackInboundBytes: number;
  attackOutboundBytes: number;
  lastSampledAt: Date | null;
  isDeleted: boolean;
}

/**
 * Use by server and period of an account, from the first day up to the last one, both included. Of a day that two
 * sources know of, the one that is named speaks; with `isAlone` no other one does.
 */
export async function listUse(
  db: Queryable,
  of: { tenantId: number; serverId: number | null },
  range: { fromDay: string; toDay: string },
  by: { granularity: 'month' | 'day'; source: BandwidthSource; isAlone?: boolean },
): Promise<UseRow[]> {
  const format = by.granularity === 'month' ? 'YYYY-MM' : 'YYYY-MM-DD';
  const { rows } = await sql<UseRow>`
    with days as (
      select distinct on (server_id, day) * from bandwidth_days
      where tenant_id = ${of.tenantId} and day between ${range.fromDay} and ${range.toDay}
        and (${of.serverId}::bigint is null or server_id = ${of.serverId})
        and (source = ${by.source} or not ${by.isAlone ?? false})
      order by server_id, day, source = ${by.source} desc)
    select d.server_id, s.name as server_name, to_char(d.day, ${format}) as period,
      sum(d.inbound_bytes)::bigint as inbound_bytes, sum(d.outbound_bytes)::bigint as outbound_bytes,
      coalesce(sum(o.inbound_bytes), 0)::bigint as own_scan_inbound_bytes,
      coalesce(sum(o.outbound_bytes), 0)::bigint as own_scan_outbound_bytes,
      coalesce(sum(a.inbound_bytes), 0)::bigint as attack_inbound_bytes,
      coalesce(sum(a.outbound_bytes), 0)::bigint as attack_outbound_bytes, max(d.last_sampled_at) as last_sampled_at,
      s.provisioning_state = 'deleted' as is_deleted
    from days d join servers s on s.id = d.server_id
    left join bandwidth_own_scans o on o.server_id = d.server_id and o.day = d.day
    left join bandwidth_attacks a on a.server_id = d.server_id and a.day = d.day
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
    select id as server_id, name, created_at, provisioning_state = 'deleted' as is_deleted, provisioned_at as "from",
      deleted_at as "to"
    from servers where tenant_id = ${tenantId} and (deleted_at is null or deleted_at > ${new Date(sinceMs)})
    order by id`.execute(db);
  return rows.map(({ from, to, ...server }) => ({
    ...server,
    life: from === null ? null : { fromMs: from.getTime(), toMs: to?.getTime() ?? null },
  }));
}

/** What the provider's own port scans caused since then, of each server and UTC day. */
export const ownScanDays = (fromMs: number): RawBuilder<unknown> => sql`
  select s.server_id, (h.at at time zone 'utc')::date as day, sum(h.own_scan_inbound_bytes) as inbound_bytes,
    sum(h.own_scan_outbound_bytes) as outbound_bytes
  from protect_usage_hours h join protect_series s on s.allocation_id = h.allocation_id
  where h.at >= ${new Date(fromMs)} and (h.own_scan_inbound_bytes > 0 or h.own_scan_outbound_bytes > 0)
  group by 1, 2`;

/**
 * What attacks were of each server and UTC day since then. A minute's attack bytes are those of the incidents of its generation in that
 * minute, so no byte is left out without an incident. Where attacks in both directions shared a minute, as much as there was is
 * taken to be outbound, which is what counts by default.
 */
export const attackDays = (fromMs: number): RawBuilder<unknown> => sql`
  select server_id, day, sum(outbound)::bigint as outbound_bytes,
    sum(least(bytes - outbound, case when has_inbound then inbound_bytes else 0 end))::bigint as inbound_bytes
  from (
    select a.server_id, a.day, a.bytes, a.has_inbound, a.inbound_bytes,
      least(a.bytes, case when a.has_outbound then a.outbound_bytes else 0 end) as outbound
    from (
      select s.server_id, (m.minute at time zone 'utc')::date as day, round(m.ddos_bps * 60 / 8)::bigint as bytes,
        greatest(0, coalesce(m.inbound_bytes, 0) - m.own_scan_inbound_bytes) as inbound_bytes,
        greatest(0, coalesce(m.outbound_bytes, 0) - m.own_scan_outbound_bytes) as outbound_bytes,
        bool_or(i.direction = 'inbound') as has_inbound, bool_or(i.direction = 'outbound') as has_outbound
      from protect_incidents i
      join protect_series s on s.allocation_id = i.allocation_id
      join protect_minutes m on m.allocation_id = i.allocation_id and m.minute >= ${new Date(fromMs)}
        and m.minute > i.started_at - interval '1 minute' and m.minute <= i.last_observed_at
      where i.last_observed_at >= ${new Date(fromMs)} and i.severity = 'attack' and not i.is_drill and m.ddos_bps > 0
      group by s.server_id, m.allocation_id, m.minute) a) each
  group by server_id, day`;

/** What the stored minutes since then say of each server and UTC day. */
export const observedDays = (fromMs: number): RawBuilder<unknown> => sql`
  select s.server_id, (m.minute at time zone 'utc')::date as day, s.tenant_id,
    coalesce(sum(m.inbound_bytes), 0) as inbound_bytes, coalesce(sum(m.outbound_bytes), 0) as outbound_bytes,
    max(m.minute) + interval '1 minute' as last_sampled_at
  from protect_minutes m join protect_series s on s.allocation_id = m.allocation_id
  where m.minute >= ${new Date(fromMs)} and (m.inbound_bytes is not null or m.outbound_bytes is not null)
  group by 1, 2, 3`;

export interface UsingAccount {
  tenantId: number;
  openedAt: Date;
}

/** Accounts that used something in this month, by the monitor's minutes, and whose month is not settled. */
export async function listUnsettledAccounts(db: Queryable, period: string): Promise<UsingAccount[]> {
  const { rows } = await sql<UsingAccount>`
    select t.id as tenant_id, t.created_at as opened_at
    from (select distinct d.tenant_id from bandwidth_days d, (select to_date(${period}, 'YYYY-MM') as month) m
      where d.source = 'telemetry' and d.day >= m.month and d.day < m.month + interval '1 month'
        and not exists (select from bandwidth_months k
          where k.tenant_id = d.tenant_id and k.month = m.month and k.settled_at is not null)) used
    join tenants t on t.id = used.tenant_id order by t.id`.execute(db);
  return rows;
}

/** Accounts that chose the limit, are not limited in the present month, and have used the least pool that an account has. */
export async function listUsedUp(
  db: Queryable,
  query: { poolCounts: 'outbound' | 'total'; leastPoolBytes: number },
): Promise<AccountNearing[]> {
  const { rows } = await sql<AccountNearing>`
    with present as (select date_trunc('month', svc_now() at time zone 'utc')::date as month),
    chosen as (
      select distinct on (tenant_id) tenant_id, when_used_up from bandwidth_choices order by tenant_id, month desc),
    used as (
      select d.tenant_id, sum(d.outbound_bytes + case when ${query.poolCounts} = 'total' then d.inbound_bytes else 0 end) as bytes
      from chosen c join bandwidth_days d on d.tenant_id = c.tenant_id, present
      where c.when_used_up = 'limit' and d.source = 'telemetry' and d.day >= present.month group by 1)
    select t.id as tenant_id, t.created_at as opened_at, t.name, t.currency, coalesce(k.told_percent, 0) as told_percent
    from used join present on true join tenants t on t.id = used.tenant_id
    left join bandwidth_months k on k.tenant_id = t.id and k.month = present.month
    where used.bytes >= ${query.leastPoolBytes}::numeric and k.limited_at is null order by t.id`.execute(db);
  return rows;
}

/**
 * The speed in Mbit/s that servers with a public address are to have, null for no limit: those of plans with a port speed, those of accounts
 * that are limited in the present month, and those that are limited as far as hypervisors have confirmed it. `limitMbit` 0: no account is.
 */
export const wantedSpeeds = (limitMbit: number): RawBuilder<unknown> => sql`
  select s.id, least(p.port_mbit, case when m.limited_at is not null and ${limitMbit}::int > 0 then ${limitMbit}::int end) as mbit
  from servers s join plans p on p.id = s.plan_id
  left join bandwidth_months m on m.tenant_id = s.tenant_id and m.limited_at is not null
    and m.month = date_trunc('month', svc_now() at time zone 'utc')::date
  where s.provisioning_state = 'ready'
    and (p.port_mbit is not null or s.id in (
      select l.id from servers l join bandwidth_months k on k.tenant_id = l.tenant_id
      where k.limited_at is not null and k.month = date_trunc('month', svc_now() at time zone 'utc')::date
      union all select server_id from server_speeds where mbit is not null))
    and exists (select from allocations a where a.server_id = s.id and a.released_at is null)`;

export interface AccountNearing extends UsingAccount {
  name: string;
  currency: string;
  /** Up to which share of its pool it has been told. */
  toldPercent: number;
}

/**
 * Accounts that have used, by the monitor's minutes, the next of these shares of the least pool that an account has in the present month;
 * their own pool may be larger.
 */
export async function listNearing(
  db: Queryable,
  query: { poolCounts: 'outbound' | 'total'; leastPoolBytes: number; thresholds: readonly number[] },
): Promise<AccountNearing[]> {
  const { rows } = await sql<AccountNearing>`
    with present as (select date_trunc('month', svc_now() at time zone 'utc')::date as month),
    used as (
      select d.tenant_id, sum(d.outbound_bytes + case when ${query.poolCounts} = 'total' then d.inbound_bytes else 0 end) as bytes
      from bandwidth_days d, present where d.source = 'telemetry' and d.day >= present.month group by 1)
    select t.id as tenant_id, t.created_at as opened_at, t.name, t.currency, coalesce(k.told_percent, 0) as told_percent
    from used join present on true join tenants t on t.id = used.tenant_id
    left join bandwidth_months k on k.tenant_id = t.id and k.month = present.month
    where used.bytes * 100 >= ${query.leastPoolBytes}::numeric * (select min(t) from unnest(${[...query.thresholds]}::int[]) as t
      where t > coalesce(k.told_percent, 0))
    order by t.id`.execute(db);
  return rows;
}
