/**
 * Statements on several servers together: their rates in steps, their totals beside those of the time before, and the
 * applications in their minutes. Every one names the owners and the servers.
 */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Which series count. */
export interface UsageScope {
  /** `all` for staff. */
  tenantIds: readonly number[] | 'all';
  /** Null: all servers of these tenants. */
  serverIds: readonly number[] | null;
  /** Only these addresses; null for all. */
  addresses: readonly string[] | null;
}

export interface UsageRange {
  fromMs: number;
  toMs: number;
}

const seriesOf = ({ tenantIds, serverIds, addresses }: UsageScope) => sql`
  ${serverIds === null ? sql`true` : sql`server_id = any(${[...serverIds]}::bigint[])`}
  and ${tenantIds === 'all' ? sql`true` : sql`tenant_id = any(${[...tenantIds]}::bigint[])`}
  and ${addresses === null ? sql`true` : sql`address = any(${[...addresses]}::text[])`}`;

const minutesOf = ({ fromMs, toMs }: UsageRange) =>
  sql`minute >= ${new Date(fromMs)} and minute < ${new Date(toMs)}`;

/** What is added up: each server, or each tenant. */
export type UsageGroup = 'server' | 'tenant';
const groups = { server: sql`server_id`, tenant: sql`tenant_id` } as const;

/** Sums over the addresses of each owner, minute by minute. */
const byMinute = (scope: UsageScope, range: UsageRange, of: UsageGroup) => sql`by_minute as (
  select ${groups[of]} as owner, minute, sum(inbound_bps) as inbound_bps, sum(outbound_bps) as outbound_bps,
    sum(inbound_bytes) as inbound_bytes, sum(outbound_bytes) as outbound_bytes
  from protect_series join protect_minutes using (allocation_id)
  where ${seriesOf(scope)} and ${minutesOf(range)} and (inbound_bps is not null or outbound_bps is not null)
  group by 1, 2)`;

/** How long an application is shown (NET-2.4.4). */
const applicationsShown = sql.lit('24 hours');

export interface UsageStep {
  /** Of the server or the tenant; null: of all servers together. */
  id: number | null;
  at: Date;
  inboundBps: number | null;
  outboundBps: number | null;
  inboundBytes: number | null;
  outboundBytes: number | null;
  /** Minutes with observed traffic. */
  minutes: number;
}

/** Means over the observed minutes, as `listSteps` has them. */
export async function listUsageSteps(
  db: Queryable,
  scope: UsageScope,
  range: UsageRange & { stepSeconds: number },
  of: UsageGroup,
): Promise<UsageStep[]> {
  const { rows } = await sql<UsageStep>`
    with ${byMinute(scope, range, of)}
    select owner::bigint as id, date_bin(make_interval(secs => ${range.stepSeconds}), minute, 'epoch') as at,
      avg(inbound_bps) as inbound_bps, avg(outbound_bps) as outbound_bps, sum(inbound_bytes)::bigint as inbound_bytes,
      sum(outbound_bytes)::bigint as outbound_bytes, count(*)::int as minutes
    from by_minute group by 1, 2 order by 1, 2`.execute(db);
  return rows;
}

export interface UsageTotal {
  /** Of the server or the tenant; null: of all servers together. */
  id: number | null;
  inboundBytes: number;
  outboundBytes: number;
  /** Of the minutes' rates: 95 % of the observed minutes are not above it. */
  inboundP95: number | null;
  outboundP95: number | null;
  minutes: number;
}

/** Totals of a range. */
export async function listUsageTotals(
  db: Queryable,
  scope: UsageScope,
  range: UsageRange,
  of: UsageGroup,
): Promise<UsageTotal[]> {
  const { rows } = await sql<UsageTotal>`
    with ${byMinute(scope, range, of)}
    select owner::bigint as id, coalesce(sum(inbound_bytes), 0)::bigint as inbound_bytes,
      coalesce(sum(outbound_bytes), 0)::bigint as outbound_bytes,
      percentile_disc(0.95) within group (order by inbound_bps) as inbound_p95,
      percentile_disc(0.95) within group (order by outbound_bps) as outbound_p95, count(*)::int as minutes
    from by_minute group by 1 order by 1`.execute(db);
  return rows;
}

export interface IdentityUse {
  serverId: number;
  name: string;
  transport: string | null;
  serverPort: number | null;
  inboundBytes: number;
  outboundBytes: number;
  lastSentAt: Date;
}

/**
 * Applications of a range, by server. One is listed only if the server itself sent bytes for it in the last 24 hours, and
 * nothing older is shown: what strangers send in neither creates nor renews a row (NET-2.4.4).
 */
export async function listIdentities(
  db: Queryable,
  scope: UsageScope,
  { fromMs, toMs }: UsageRange,
): Promise<IdentityUse[]> {
  const isNow = sql`minute >= ${new Date(fromMs)} and minute < ${new Date(toMs)}`;
  const { rows } = await sql<IdentityUse>`
    select server_id, name, transport, server_port,
      coalesce(sum(seen.inbound_bytes) filter (where ${isNow}), 0)::bigint as inbound_bytes,
      coalesce(sum(seen.outbound_bytes) filter (where ${isNow}), 0)::bigint as outbound_bytes,
      max(minute) filter (where seen.outbound_bytes > 0) as last_sent_at
    from protect_series join protect_minutes using (allocation_id),
      jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
        inbound_bytes bigint, outbound_bytes bigint)
    where ${seriesOf(scope)} and minute > svc_now() - ${applicationsShown}::interval
    group by server_id, name, transport, server_port
    having bool_or(seen.outbound_bytes > 0)`.execute(db);
  return rows;
}
