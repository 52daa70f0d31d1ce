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

/** What is added up: each server, each tenant, or all of them together. */
export type UsageGroup = 'server' | 'tenant' | 'all';
const groups = { server: sql`server_id`, tenant: sql`tenant_id`, all: sql`null::bigint` } as const;

const isObserved = sql`(inbound_bps is not null or outbound_bps is not null)`;
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

/** Sums over the addresses minute by minute, then means over the observed minutes, as `listSteps` has them. */
export async function listUsageSteps(
  db: Queryable,
  scope: UsageScope,
  range: UsageRange & { stepSeconds: number },
  of: UsageGroup,
): Promise<UsageStep[]> {
  const group = groups[of];
  const { rows } = await sql<UsageStep>`
    with by_minute as (
      select ${group} as owner, minute, sum(inbound_bps) as inbound_bps, sum(outbound_bps) as outbound_bps,
        sum(inbound_bytes) as inbound_bytes, sum(outbound_bytes) as outbound_bytes
      from protect_series join protect_minutes using (allocation_id)
      where ${seriesOf(scope)} and ${minutesOf(range)} and ${isObserved}
      group by 1, 2)
    select owner::bigint as id, date_bin(make_interval(secs => ${range.stepSeconds}), minute, 'epoch') as at,
      avg(inbound_bps) as "inboundBps", avg(outbound_bps) as "outboundBps",
      sum(inbound_bytes)::bigint as "inboundBytes", sum(outbound_bytes)::bigint as "outboundBytes",
      count(*)::int as minutes
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
  /** The same length of time before. */
  previousBytes: number;
  previousMinutes: number;
}

/** Totals of a range and, where it is wanted, of the same length of time before it. */
export async function listUsageTotals(
  db: Queryable,
  scope: UsageScope,
  { fromMs, toMs }: UsageRange,
  of: UsageGroup,
  { withPrevious }: { withPrevious: boolean },
): Promise<UsageTotal[]> {
  const group = groups[of];
  const from = sql`${new Date(fromMs)}::timestamptz`;
  const { rows } = await sql<UsageTotal>`
    with by_minute as (
      select ${group} as owner, minute, minute >= ${from} as is_now, sum(inbound_bps) as inbound_bps,
        sum(outbound_bps) as outbound_bps, sum(inbound_bytes) as inbound_bytes, sum(outbound_bytes) as outbound_bytes
      from protect_series join protect_minutes using (allocation_id)
      where ${seriesOf(scope)} and ${minutesOf({ fromMs: withPrevious ? 2 * fromMs - toMs : fromMs, toMs })} and ${isObserved}
      group by 1, 2)
    select owner::bigint as id,
      coalesce(sum(inbound_bytes) filter (where is_now), 0)::bigint as "inboundBytes",
      coalesce(sum(outbound_bytes) filter (where is_now), 0)::bigint as "outboundBytes",
      percentile_disc(0.95) within group (order by inbound_bps) filter (where is_now) as "inboundP95",
      percentile_disc(0.95) within group (order by outbound_bps) filter (where is_now) as "outboundP95",
      count(*) filter (where is_now)::int as minutes,
      coalesce(sum(coalesce(inbound_bytes, 0) + coalesce(outbound_bytes, 0)) filter (where not is_now), 0)::bigint
        as "previousBytes",
      count(*) filter (where not is_now)::int as "previousMinutes"
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
  /** Bytes of both directions in the same length of time before. */
  previousBytes: number;
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
  const isBefore = sql`minute >= ${new Date(2 * fromMs - toMs)} and minute < ${new Date(fromMs)}`;
  const { rows } = await sql<IdentityUse>`
    select server_id as "serverId", name, transport, server_port as "serverPort",
      coalesce(sum(seen.inbound_bytes) filter (where ${isNow}), 0)::bigint as "inboundBytes",
      coalesce(sum(seen.outbound_bytes) filter (where ${isNow}), 0)::bigint as "outboundBytes",
      coalesce(sum(seen.inbound_bytes + seen.outbound_bytes) filter (where ${isBefore}), 0)::bigint as "previousBytes",
      max(minute) filter (where seen.outbound_bytes > 0) as "lastSentAt"
    from protect_series join protect_minutes using (allocation_id),
      jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
        inbound_bytes bigint, outbound_bytes bigint)
    where ${seriesOf(scope)} and minute > svc_now() - ${applicationsShown}::interval
    group by server_id, name, transport, server_port
    having bool_or(seen.outbound_bytes > 0)`.execute(db);
  return rows;
}

export interface IdentityStep {
  serverId: number;
  at: Date;
  name: string;
  transport: string | null;
  serverPort: number | null;
  inboundBytes: number;
  outboundBytes: number;
}

/** Bytes of applications in steps; which of them may be shown, `listIdentities` says. */
export async function listIdentitySteps(
  db: Queryable,
  scope: UsageScope,
  range: UsageRange & { stepSeconds: number },
): Promise<IdentityStep[]> {
  const { rows } = await sql<IdentityStep>`
    select server_id as "serverId", date_bin(make_interval(secs => ${range.stepSeconds}), minute, 'epoch') as at,
      name, transport, server_port as "serverPort", sum(seen.inbound_bytes)::bigint as "inboundBytes",
      sum(seen.outbound_bytes)::bigint as "outboundBytes"
    from protect_series join protect_minutes using (allocation_id),
      jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
        inbound_bytes bigint, outbound_bytes bigint)
    where ${seriesOf(scope)} and ${minutesOf(range)} and minute > svc_now() - ${applicationsShown}::interval
    group by 1, 2, 3, 4, 5 order by 2`.execute(db);
  return rows;
}
