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
  by: { granularity: 'month' | 'day'; source: BandwidthSource },
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
      coalesce(sum(o.inbound_bytes), 0)::bigint as "ownScanInboundBytes",
      coalesce(sum(o.outbound_bytes), 0)::bigint as "ownScanOutboundBytes",
      max(d.last_sampled_at) as "lastSampledAt", s.provisioning_state = 'deleted' as "isDeleted"
    from days d join servers s on s.id = d.server_id
    left join bandwidth_own_scans o on o.server_id = d.server_id and o.day = d.day
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

/** What the provider's own port scans caused since then, of each server and UTC day. */
export const ownScanDays = (fromMs: number): RawBuilder<unknown> => sql`
  select s.server_id, (h.at at time zone 'utc')::date as day, sum(h.own_scan_inbound_bytes) as inbound_bytes,
    sum(h.own_scan_outbound_bytes) as outbound_bytes
  from protect_usage_hours h join protect_series s on s.allocation_id = h.allocation_id
  where h.at >= ${new Date(fromMs)} and (h.own_scan_inbound_bytes > 0 or h.own_scan_outbound_bytes > 0)
  group by 1, 2`;

/** What the stored minutes since then say of each server and UTC day. */
export const observedDays = (fromMs: number): RawBuilder<unknown> => sql`
  select s.server_id, (m.minute at time zone 'utc')::date as day, s.tenant_id,
    coalesce(sum(m.inbound_bytes), 0) as inbound_bytes, coalesce(sum(m.outbound_bytes), 0) as outbound_bytes,
    max(m.minute) + interval '1 minute' as last_sampled_at
  from protect_minutes m join protect_series s on s.allocation_id = m.allocation_id
  where m.minute >= ${new Date(fromMs)} and (m.inbound_bytes is not null or m.outbound_bytes is not null)
  group by 1, 2, 3`;
