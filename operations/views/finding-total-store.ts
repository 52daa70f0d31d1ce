/**
 * Counts of potential vulnerabilities of all customers.
 *
 * A list without a filter is counted in groups by an index, which reads no record; what the list leaves out is little, and is
 * subtracted: findings of released addresses, of evidence that has expired and is not deleted yet, and ignored ones.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type FindingListQuery, ownerJoins, subjectConditions } from './finding-list-store.ts';
import { conditions, type FindingSeverityFilter, joined } from './finding-store.ts';

export interface FindingTotals {
  /** Findings, and servers that have active ones. */
  active: number;
  ignored: number;
  servers: number;
  /** Active ones. */
  critical: number;
  high: number;
  medium: number;
  low: number;
  none: number;
  unrated: number;
  knownExploited: number;
  /** Services that can't be assessed. */
  unable: number;
  /** Of the newest check of any address; null while none was delivered. */
  checkedAt: Date | null;
  /** Of the oldest records that an address was compared with. */
  databaseAt: Date | null;
}

type Counts = Omit<FindingTotals, 'unable' | 'checkedAt' | 'databaseAt'>;

/** Over what `listAllFindings` lists. */
export async function totalFindings(
  db: Queryable,
  query: Omit<FindingListQuery, 'after' | 'limit'>,
): Promise<FindingTotals> {
  const { severities, ...others } = query;
  const isFiltered = Object.values(others).some((value) => value !== undefined && value !== null);
  const [counts, services] = await Promise.all([
    isFiltered ? countListed(db, query) : countAll(db, severities),
    countServices(db),
  ]);
  return { ...counts, ...services };
}

/** One by one: of a customer, a server or a CVE. */
async function countListed(db: Queryable, query: Omit<FindingListQuery, 'after' | 'limit'>): Promise<Counts> {
  const where = [...subjectConditions(query), ...conditions(query)];
  const { rows } = await sql<Counts>`
    select ${bySeverity(sql`count(*) filter (where i.id is null`, sql`)`)},
      count(*) filter (where i.id is not null)::int as ignored,
      count(distinct p.server_id) filter (where i.id is null)::int as servers
    from ${joined} ${ownerJoins} where ${sql.join(where, sql` and `)}`.execute(db);
  return rows[0]!;
}

/** In groups. */
async function countAll(
  db: Queryable,
  severities: readonly FindingSeverityFilter[] | undefined,
): Promise<Counts> {
  const wanted = (severity: RawBuilder<unknown>) =>
    severities === undefined
      ? sql`true`
      : sql`coalesce(${severity}, 'unrated') = any(${[...severities]}::text[])`;
  const { rows } = await sql<Counts>`
    with hidden as (
      select f.allocation_id, f.transport, f.port, f.cve_id, f.severity, f.is_known_exploited
      from finding_projections p join allocations a on a.id = p.allocation_id and a.released_at is not null
      join findings f on f.allocation_id = p.allocation_id where not f.is_upstream
      union
      select f.allocation_id, f.transport, f.port, f.cve_id, f.severity, f.is_known_exploited
      from finding_services s join findings f on f.allocation_id = s.allocation_id and f.transport = s.transport and f.port = s.port
      where s.observed_at <= svc_now() - interval '7 days' and not f.is_upstream),
    ignored as (
      select f.severity, f.is_known_exploited from finding_ignores i
      join finding_projections p on p.allocation_id = i.allocation_id and p.tenant_id = i.tenant_id and p.server_id = i.server_id
      join findings f on f.allocation_id = i.allocation_id and f.transport = i.transport and f.port = i.port
        and f.cve_id = i.cve_id and f.fingerprint = i.fingerprint and not f.is_upstream
      where i.ended_at is null and (i.until is null or i.until > svc_now()) and not exists (select 1 from hidden h
        where (h.allocation_id, h.transport, h.port, h.cve_id) = (f.allocation_id, f.transport, f.port, f.cve_id))),
    f as (
      select severity, is_known_exploited, count(*) as n from findings where not is_upstream group by severity, is_known_exploited
      union all select severity, is_known_exploited, - count(*) from hidden group by severity, is_known_exploited
      union all select severity, is_known_exploited, - count(*) from ignored group by severity, is_known_exploited)
    select ${bySeverity(sql`coalesce(sum(f.n) filter (where ${wanted(sql`f.severity`)}`, sql`), 0)`)},
      (select count(*) from ignored g where ${wanted(sql`g.severity`)})::int as ignored,
      (select count(distinct p.server_id) from finding_projections p
        join allocations a on a.id = p.allocation_id and a.released_at is null
        -- The limit makes it look at each address until the first active one, and not at all findings.
        cross join lateral (select 1 from findings f join finding_services s on s.allocation_id = f.allocation_id
            and s.transport = f.transport and s.port = f.port and s.observed_at > svc_now() - interval '7 days'
          where f.allocation_id = p.allocation_id and not f.is_upstream and ${wanted(sql`f.severity`)}
            and not exists (select 1 from finding_ignores i where i.tenant_id = p.tenant_id and i.server_id = p.server_id
              and i.allocation_id = f.allocation_id and i.transport = f.transport and i.port = f.port
              and i.fingerprint = f.fingerprint and i.cve_id = f.cve_id and i.ended_at is null
              and (i.until is null or i.until > svc_now()))
          limit 1) first)::int as servers
    from f`.execute(db);
  return rows[0]!;
}

/** Columns of active ones; what stands between the two parts narrows them to one severity. */
function bySeverity(begin: RawBuilder<unknown>, end: RawBuilder<unknown>): RawBuilder<unknown> {
  const of = (condition: RawBuilder<unknown>, name: string) =>
    sql`(${begin} and ${condition}${end})::int as ${sql.ref(name)}`;
  return sql.join([
    of(sql`true`, 'active'),
    of(sql`f.is_known_exploited`, 'knownExploited'),
    ...(['critical', 'high', 'medium', 'low', 'none'] as const).map((severity) =>
      of(sql`f.severity = ${sql.lit(severity)}`, severity),
    ),
    of(sql`f.severity is null`, 'unrated'),
  ]);
}

async function countServices(
  db: Queryable,
): Promise<Pick<FindingTotals, 'unable' | 'checkedAt' | 'databaseAt'>> {
  const { rows } = await sql<Pick<FindingTotals, 'unable' | 'checkedAt' | 'databaseAt'>>`
    select (select count(*) from finding_services s join finding_projections p on p.allocation_id = s.allocation_id
        join allocations a on a.id = p.allocation_id and a.released_at is null
        where s.reason is not null and s.observed_at > svc_now() - interval '7 days')::int as unable,
      max(p.checked_at) as "checkedAt", min(p.database_at) as "databaseAt"
    from finding_projections p join allocations a on a.id = p.allocation_id and a.released_at is null`.execute(
    db,
  );
  return rows[0]!;
}
