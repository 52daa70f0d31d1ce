/** Counts of potential vulnerabilities of all customers: sums of what is counted for each address. */
import { type RawBuilder, sql } from 'kysely';
import { type CountedSeverity, countedSeverities } from '#contracts/findings.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { isCurrent, presentCounts, sumOf } from './finding-count-store.ts';
import { type FindingListQuery, isOfSubject } from './finding-list-store.ts';
import { conditions, keptFor } from './finding-store.ts';

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

/** Both states are counted, on all pages. */
export type FindingTotalsQuery = Omit<FindingListQuery, 'state' | 'after' | 'limit'>;
type Counts = Omit<FindingTotals, 'unable' | 'checkedAt' | 'databaseAt'>;

/** Over what `listAllFindings` lists; what can't be assessed and the ages are those of all servers. */
export async function totalFindings(db: Queryable, query: FindingTotalsQuery): Promise<FindingTotals> {
  const [totals, ofCve] = await Promise.all([
    sumAddresses(db, query),
    query.cveId === undefined ? {} : countCve(db, query, query.cveId),
  ]);
  return { ...totals, ...ofCve };
}

async function sumAddresses(db: Queryable, query: FindingTotalsQuery): Promise<FindingTotals> {
  const { severities: wanted = countedSeverities } = query;
  const add = (count: RawBuilder<unknown>) => sql`coalesce(sum(${count}) filter (where c.is_wanted), 0)::int`;
  const ofEach = (severity: CountedSeverity) =>
    wanted.includes(severity) ? add(sumOf('active', [severity])) : sql`0`;
  const { rows } = await sql<FindingTotals>`
    with c as (
      select c.*, p.server_id, p.checked_at, p.database_at, ${isOfSubject(query)} as is_wanted
      from (${presentCounts}) c join finding_projections p on p.allocation_id = c.allocation_id
      join allocations a on a.id = p.allocation_id and a.released_at is null join tenants t on t.id = p.tenant_id)
    select ${add(sumOf('active', wanted))} as active, ${add(sumOf('ignored', wanted))} as ignored,
      ${add(sumOf('exploited', wanted))} as "knownExploited",
      ${sql.join(countedSeverities.map((severity) => sql`${ofEach(severity)} as ${sql.ref(severity)}`))},
      count(distinct c.server_id) filter (where c.is_wanted and ${sumOf('active', wanted)} > 0)::int as servers,
      coalesce(sum(c.unable), 0)::int as unable, max(c.checked_at) as "checkedAt", min(c.database_at) as "databaseAt"
    from c`.execute(db);
  return rows[0]!;
}

/** One by one. Where counts hold, no evidence has expired, so only of other addresses it is looked at, one by one. */
async function countCve(db: Queryable, query: FindingTotalsQuery, cveId: string): Promise<Counts> {
  const active = (condition: RawBuilder<unknown>) =>
    sql`count(*) filter (where g.cve_id is null and ${condition})::int`;
  const { rows } = await sql<Counts>`
    with ignored as materialized (
      select f.allocation_id, f.transport, f.port, f.cve_id from finding_ignores i
      join finding_projections p on p.allocation_id = i.allocation_id and p.tenant_id = i.tenant_id and p.server_id = i.server_id
      join findings f on f.allocation_id = i.allocation_id and f.transport = i.transport and f.port = i.port
        and f.cve_id = i.cve_id and f.fingerprint = i.fingerprint and not f.is_upstream
      where i.cve_id = ${cveId} and i.ended_at is null and (i.until is null or i.until > svc_now()))
    select ${active(sql`true`)} as active, count(g.cve_id)::int as ignored,
      ${active(sql`f.is_known_exploited`)} as "knownExploited", ${sql.join(
        countedSeverities.map(
          (severity) =>
            sql`${active(
              severity === 'unrated' ? sql`f.severity is null` : sql`f.severity = ${sql.lit(severity)}`,
            )} as ${sql.ref(severity)}`,
        ),
      )},
      count(distinct p.server_id) filter (where g.cve_id is null)::int as servers
    from findings f join finding_projections p on p.allocation_id = f.allocation_id
    join finding_counts c on c.allocation_id = f.allocation_id
    join allocations a on a.id = p.allocation_id and a.released_at is null join tenants t on t.id = p.tenant_id
    left join ignored g on (g.allocation_id, g.transport, g.port) = (f.allocation_id, f.transport, f.port)
    where ${sql.join([sql`not f.is_upstream`, isOfSubject(query), ...conditions({ ...query, cveId })], sql` and `)}
      and (${isCurrent} or (select true from finding_services s
        where s.allocation_id = f.allocation_id and s.transport = f.transport and s.port = f.port
          and s.observed_at > svc_now() - ${keptFor}::interval limit 1))`.execute(db);
  return rows[0]!;
}
