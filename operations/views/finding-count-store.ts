/**
 * Potential vulnerabilities as they are counted for each address.
 *
 * The transactions that change findings or ignores store the counts, and until when they hold: then evidence expires or an ignore
 * ends. An address whose counts do not hold any more is counted anew by every reader, so no count is ever late.
 */
import { type RawBuilder, sql } from 'kysely';
import { type CountedSeverity, countedSeverities } from '#contracts/findings.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findingJoins, keptFor } from './finding-store.ts';

const countBySeverity = (condition: RawBuilder<unknown>) =>
  sql`array[${sql.join(
    countedSeverities.map(
      (severity) =>
        sql`count(*) filter (where ${condition} and ${
          severity === 'unrated' ? sql`f.severity is null` : sql`f.severity = ${sql.lit(severity)}`
        })::int`,
    ),
  )}]`;

/** Counts the findings of these addresses: `allocation_id`, `valid_until`, `active`, `ignored`, `exploited`, `unable`. */
export const countFindings = (isWanted: RawBuilder<unknown>): RawBuilder<unknown> => sql`
  select p.allocation_id, coalesce(least(e.until, g.until), 'infinity') as valid_until, g.active, g.ignored, g.exploited, e.unable
  from finding_projections p
  cross join lateral (
    select min(s.observed_at) + ${keptFor}::interval as until, count(*) filter (where s.reason is not null)::int as unable
    from finding_services s
    where s.allocation_id = p.allocation_id and s.observed_at > svc_now() - ${keptFor}::interval) e
  cross join lateral (
    select min(i.until) as until, ${countBySeverity(sql`i.id is null`)} as active,
      ${countBySeverity(sql`i.id is not null`)} as ignored,
      ${countBySeverity(sql`i.id is null and f.is_known_exploited`)} as exploited
    from finding_services s ${findingJoins}
    where s.allocation_id = p.allocation_id and s.observed_at > svc_now() - ${keptFor}::interval and not f.is_upstream) g
  where ${isWanted}`;

/** Stored counts `c` that hold now. */
export const isCurrent = sql`c.valid_until > svc_now() and c.valid_from <= svc_now()`;
/** The others. */
export const isOutdated = sql`(c.valid_until <= svc_now() or c.valid_from > svc_now())`;

/** The same of all addresses, as it is stored where that holds. */
export const presentCounts = sql`
  select c.allocation_id, c.active, c.ignored, c.exploited, c.unable from finding_counts c where ${isCurrent}
  union all
  select allocation_id, active, ignored, exploited, unable from (${countFindings(
    sql`p.allocation_id in (select c.allocation_id from finding_counts c where ${isOutdated})`,
  )}) anew`;

/** The sum of some severities of one address's counts `c`. */
export function sumOf(
  state: 'active' | 'ignored' | 'exploited',
  severities: readonly CountedSeverity[] = countedSeverities,
): RawBuilder<unknown> {
  const wanted = countedSeverities.flatMap((severity, at) => (severities.includes(severity) ? [at + 1] : []));
  return wanted.length === 0
    ? sql`0`
    : sql`(${sql.join(
        wanted.map((at) => sql`${sql.ref(`c.${state}`)}[${sql.lit(at)}]`),
        sql` + `,
      )})`;
}

export interface ServerFindingCount {
  serverId: number;
  active: number;
  /** Of these. */
  critical: number;
  high: number;
  knownExploited: number;
}

/** Of servers that have active ones, at addresses that they have now; customers see none of servers whose views they switched off. */
export async function countFindingsOfServers(
  db: Queryable,
  serverIds: readonly number[],
  tenantIds: readonly number[] | 'all',
): Promise<ServerFindingCount[]> {
  const ofOwner =
    tenantIds === 'all'
      ? sql`true`
      : sql`p.tenant_id = any(${[...tenantIds]}::bigint[]) and not exists (
          select 1 from protect_settings c where c.server_id = p.server_id and not c.views_on)`;
  const { rows } = await sql<ServerFindingCount>`
    select p.server_id as "serverId", sum(${sumOf('active')})::int as active,
      sum(${sumOf('active', ['critical'])})::int as critical, sum(${sumOf('active', ['high'])})::int as high,
      sum(${sumOf('exploited')})::int as "knownExploited"
    from finding_projections p join (${presentCounts}) c on c.allocation_id = p.allocation_id
      join allocations a on a.id = p.allocation_id and a.server_id = p.server_id and a.released_at is null
    where p.server_id = any(${[...serverIds]}::bigint[]) and ${ofOwner}
    group by p.server_id having sum(${sumOf('active')}) > 0`.execute(db);
  return rows;
}
