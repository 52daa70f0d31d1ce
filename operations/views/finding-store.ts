/** Potential vulnerabilities: of one server as its customer sees them, and of all customers for operators. */

import { type RawBuilder, sql } from 'kysely';
import { type CountedSeverity, countedSeverities, type FindingSeverity } from '#contracts/findings.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export type FindingState = 'active' | 'ignored';

/** Evidence older than this is shown no more (NET-8.R4). */
export const keptFor = sql.lit(kept.scans);

/** A finding, its evidence, and why it is ignored where it is. */
export interface FindingRow {
  allocationId: number;
  address: string;
  transport: ScanTransport;
  port: number;
  product: string | null;
  version: string | null;
  fingerprint: string;
  scanId: string;
  observedAt: Date;
  checkedAt: Date;
  cveId: string;
  severity: FindingSeverity | null;
  score: number | null;
  cvssVersion: string | null;
  cvssVector: string | null;
  summary: string;
  publishedAt: Date;
  modifiedAt: Date;
  /** `platform`: what scans don't see decides; `bounded`: the record or the version is not exact enough. */
  incomplete: 'platform' | 'bounded' | null;
  isDisputed: boolean;
  isKnownExploited: boolean;
  /** Of a package that its distribution calls affected; `fixed_in` is null where there is no fix yet. */
  package: { fixed_in: string | null } | null;
  /** First delivery of this finding for this version; null of the original of a package. */
  firstFoundAt: Date | null;
  state: FindingState;
  ignoreReason: string | null;
  ignoredAt: Date | null;
  ignoredUntil: Date | null;
  /** The person; null where it is gone. */
  ignoredBy: string | null;
  isIgnoredByKey: boolean | null;
}

/** The place of a finding in a list: the known exploited first, then by score, then by name and place. */
export interface FindingPlace {
  isKnownExploited: boolean;
  /** -1 where there is none. */
  score: number;
  cveId: string;
  allocationId: number;
  transport: string;
  port: number;
}

export interface FindingFilter {
  state?: FindingState | undefined;
  severities?: readonly CountedSeverity[] | undefined;
  cveId?: string | undefined;
  /** Null: any. */
  address?: string | null | undefined;
  transport?: string | undefined;
  port?: number | undefined;
  fingerprint?: string | undefined;
}

export interface FindingQuery extends FindingFilter {
  /** True: those of the originals of packages, instead of those of the services themselves. */
  isUpstream?: boolean | undefined;
  after?: FindingPlace | undefined;
  limit: number;
}

/** Generations that a server has now. */
export interface FindingScope {
  serverId: number;
  tenantId: number;
  allocationIds: readonly number[];
}

/** The time of the statement, read once and not for each row. */
export const now = sql`(select svc_now())`;

/** After `p` and `f`: the ignore `i` that holds now, of this very generation, port, version and CVE. */
export const ignoreJoin = sql`
  left join finding_ignores i on i.tenant_id = p.tenant_id and i.server_id = p.server_id
    and i.allocation_id = f.allocation_id and i.transport = f.transport and i.port = f.port
    and i.fingerprint = f.fingerprint and i.cve_id = f.cve_id and i.ended_at is null
    and (i.until is null or i.until > ${now})`;

/** After `p` and `s`: their findings `f`, each with its ignore. */
export const findingJoins = sql`
  join findings f on f.allocation_id = s.allocation_id and f.transport = s.transport and f.port = s.port ${ignoreJoin}`;

export const joined = sql`
  finding_projections p join finding_services s on s.allocation_id = p.allocation_id
    and s.observed_at > ${now} - ${keptFor}::interval ${findingJoins}`;

/** Of `joined`. What only names something is no join: planning one of nine tables takes longer than reading a page. */
export const findingColumns = sql`
  f.allocation_id, p.address, f.transport, f.port, s.product, s.version, f.fingerprint, s.scan_id, s.observed_at,
  p.checked_at, f.cve_id, f.severity, f.score, f.cvss_version, f.cvss_vector, f.summary, f.published_at,
  f.modified_at, f.incomplete, f.is_disputed, f.is_known_exploited, f.package,
  (select k.first_at from known_findings k where k.server_id = p.server_id and k.tenant_id = p.tenant_id
    and k.transport = f.transport and k.port = f.port and k.fingerprint = f.fingerprint and k.cve_id = f.cve_id) as first_found_at,
  case when i.id is null then 'active' else 'ignored' end as state, i.reason as ignore_reason,
  i.created_at as ignored_at, i.until as ignored_until,
  (select name from people where id = i.person_id) as ignored_by, i.is_by_key as is_ignored_by_key`;

export const order = sql`not f.is_known_exploited, - coalesce(f.score, -1), f.cve_id, f.allocation_id, f.transport, f.port`;

export function conditions(filter: FindingFilter): RawBuilder<unknown>[] {
  const { state, severities, cveId, address, transport, port, fingerprint } = filter;
  return [
    ...(state === undefined ? [] : [state === 'active' ? sql`i.id is null` : sql`i.id is not null`]),
    ...(severities === undefined ? [] : [isOfSeverity(severities)]),
    ...(cveId === undefined ? [] : [sql`f.cve_id = ${cveId}`]),
    ...(address === undefined || address === null ? [] : [sql`p.address = ${address}`]),
    ...(transport === undefined ? [] : [sql`f.transport = ${transport}`]),
    ...(port === undefined ? [] : [sql`f.port = ${port}`]),
    ...(fingerprint === undefined ? [] : [sql`f.fingerprint = ${fingerprint}`]),
  ];
}

/** One severity is compared in a way that keeps the order of its index. */
const isOfSeverity = (severities: readonly CountedSeverity[]) =>
  severities.length === 1
    ? sql`coalesce(f.severity, 'unrated') = ${severities[0]}::text`
    : sql`coalesce(f.severity, 'unrated') = any(${[...severities]}::text[])`;

export const beyond = (after: FindingPlace) => sql`
  (not f.is_known_exploited, - coalesce(f.score, -1), f.cve_id, f.allocation_id, f.transport, f.port) > (
    ${!after.isKnownExploited}::boolean, ${-after.score}::float8, ${after.cveId}::text, ${after.allocationId}::bigint,
    ${after.transport}::text, ${after.port}::int)`;

/** The same among findings of one CVE, in the order of its index. */
export const beyondOfCve = (after: FindingPlace) => sql`
  (not f.is_known_exploited, - coalesce(f.score, -1), f.allocation_id, f.transport, f.port) > (
    ${!after.isKnownExploited}::boolean, ${-after.score}::float8, ${after.allocationId}::bigint, ${after.transport}::text,
    ${after.port}::int)`;

const ofServer = ({ serverId, tenantId, allocationIds }: FindingScope) => sql`
  p.server_id = ${serverId} and p.tenant_id = ${tenantId} and p.allocation_id = any(${[...allocationIds]}::bigint[])`;

/** Findings of a server, the most severe first. */
export async function listServerFindings(
  db: Queryable,
  of: FindingScope,
  { after, limit, isUpstream = false, ...filter }: FindingQuery,
): Promise<FindingRow[]> {
  const where = [
    ofServer(of),
    isUpstream ? sql`f.is_upstream` : sql`not f.is_upstream`,
    ...conditions(filter),
    ...(after === undefined ? [] : [beyond(after)]),
  ];
  const { rows } = await sql<FindingRow>`
    select ${findingColumns} from ${joined}
    where ${sql.join(where, sql` and `)} order by ${order} limit ${limit}`.execute(db);
  return rows;
}

/** How many findings all pages of a list have. */
export async function countServerFindings(
  db: Queryable,
  of: FindingScope,
  filter: FindingFilter,
): Promise<number> {
  const where = [ofServer(of), sql`not f.is_upstream`, ...conditions(filter)];
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from ${joined} where ${sql.join(where, sql` and `)}`.execute(db);
  return rows[0]!.count;
}

/** A service that can't be assessed. */
export interface UnableRow {
  address: string;
  transport: ScanTransport;
  port: number;
  product: string | null;
  version: string | null;
  fingerprint: string;
  reason: string | null;
  scanId: string;
  observedAt: Date;
  /** Findings that the original of this package would have. */
  upstreamCount: number;
}

export async function listUnableServices(db: Queryable, of: FindingScope): Promise<UnableRow[]> {
  const { rows } = await sql<UnableRow>`
    select p.address, s.transport, s.port, s.product, s.version, s.fingerprint, s.reason, s.scan_id, s.observed_at,
      (select count(*) from findings f where f.allocation_id = s.allocation_id
        and f.transport = s.transport and f.port = s.port and f.is_upstream)::int as upstream_count
    from finding_projections p join finding_services s on s.allocation_id = p.allocation_id
    where ${ofServer(of)} and s.reason is not null and s.observed_at > svc_now() - ${keptFor}::interval
    order by p.allocation_id, s.transport, s.port`.execute(db);
  return rows;
}

interface FindingCounts {
  active: number;
  ignored: number;
  /** Active ones that are known to be exploited. */
  knownExploited: number;
  /** Active ones by severity; `unrated` has no severity. */
  critical: number;
  high: number;
  medium: number;
  low: number;
  none: number;
  unrated: number;
}

export interface FindingSummary extends FindingCounts {
  /** Services that can't be assessed, and those that were. */
  unable: number;
  assessed: number;
  /** Findings that the monitor left out. */
  truncated: number;
  /** The oldest of the newest checks of the addresses; null while none was delivered. */
  checkedAt: Date | null;
  /** The oldest database that was compared with. */
  databaseAt: Date | null;
}

export async function summarizeServerFindings(db: Queryable, of: FindingScope): Promise<FindingSummary> {
  const counts = await sql<FindingCounts>`
    select count(*) filter (where i.id is null)::int as active, count(*) filter (where i.id is not null)::int as ignored,
      count(*) filter (where i.id is null and f.is_known_exploited)::int as known_exploited,
      ${sql.join(
        countedSeverities.map(
          (severity) =>
            sql`count(*) filter (where i.id is null and ${isOfSeverity([severity])})::int as ${sql.ref(severity)}`,
        ),
      )}
    from ${joined} where ${ofServer(of)} and not f.is_upstream`.execute(db);
  const services = await sql<{ unable: number; assessed: number }>`
    select count(*) filter (where s.reason is not null)::int as unable,
      count(*) filter (where s.reason is null)::int as assessed
    from finding_projections p join finding_services s on s.allocation_id = p.allocation_id
    where ${ofServer(of)} and s.observed_at > svc_now() - ${keptFor}::interval`.execute(db);
  const checks = await sql<{ truncated: number; checkedAt: Date | null; databaseAt: Date | null }>`
    select coalesce(sum(p.truncated), 0)::float8 as truncated, min(p.checked_at) as checked_at,
      min(p.database_at) as database_at
    from finding_projections p where ${ofServer(of)}`.execute(db);
  return { ...counts.rows[0]!, ...services.rows[0]!, ...checks.rows[0]! };
}

// Potential vulnerabilities as they are counted for each address.
//
// The transactions that change findings or ignores store the counts, and until when they hold: then evidence expires or an ignore
// ends. An address whose counts do not hold any more is counted anew by every reader, so no count is ever late.

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
    select p.server_id, sum(${sumOf('active')})::int as active,
      sum(${sumOf('active', ['critical'])})::int as critical, sum(${sumOf('active', ['high'])})::int as high,
      sum(${sumOf('exploited')})::int as known_exploited
    from finding_projections p join (${presentCounts}) c on c.allocation_id = p.allocation_id
      join allocations a on a.id = p.allocation_id and a.server_id = p.server_id and a.released_at is null
    where p.server_id = any(${[...serverIds]}::bigint[]) and ${ofOwner}
    group by p.server_id having sum(${sumOf('active')}) > 0`.execute(db);
  return rows;
}

export interface ListedFinding extends FindingRow {
  serverId: number;
  serverName: string;
  tenantId: number;
  tenantName: string;
}

export interface FindingListQuery extends Pick<FindingFilter, 'state' | 'severities' | 'cveId'> {
  tenantId?: number | undefined;
  serverId?: number | undefined;
  /** Part of the customer's name. */
  customer?: string | undefined;
  after?: FindingPlace | undefined;
  limit: number;
}

type Subject = Pick<FindingListQuery, 'tenantId' | 'serverId' | 'customer'>;

/** Whether the projection `p` of the tenant `t` is of these. */
export function isOfSubject({ tenantId, serverId, customer }: Subject): RawBuilder<unknown> {
  const all = [
    sql`true`,
    ...(tenantId === undefined ? [] : [sql`p.tenant_id = ${tenantId}`]),
    ...(serverId === undefined ? [] : [sql`p.server_id = ${serverId}`]),
    ...(customer === undefined ? [] : [sql`position(lower(${customer}::text) in lower(t.name)) > 0`]),
  ];
  return sql`(${sql.join(all, sql` and `)})`;
}

/** After `p`: addresses that have not been released. */
const addressJoin = sql`join allocations a on a.id = p.allocation_id and a.released_at is null`;

/** So many findings are sorted; of more, the order is read from an index. */
const sortedMax = 20_000;

/**
 * The most severe first. Few findings are collected and sorted; of many the index of the order is read until the page is
 * full, which would read far for few.
 */
export async function listAllFindings(db: Queryable, query: FindingListQuery): Promise<ListedFinding[]> {
  const wanted = await findWanted(db, query);
  const first = wanted.count <= sortedMax ? sortFirst(query, wanted) : readFirst(query, wanted);
  const { rows } = await sql<ListedFinding>`
    with first as materialized (${first})
    select ${findingColumns}, p.server_id, (select name from servers where id = p.server_id) as server_name,
      p.tenant_id, (select name from tenants where id = p.tenant_id) as tenant_name
    from ${joined}
    where (f.allocation_id, f.transport, f.port, f.cve_id) in (select allocation_id, transport, port, cve_id from first)
    order by ${order}`.execute(db);
  return rows;
}

/** How many findings may be listed, and the addresses that have them; null: any. */
interface Wanted {
  count: number;
  allocationIds: number[] | null;
}

async function findWanted(
  db: Queryable,
  { state, severities, tenantId, serverId, customer }: FindingListQuery,
): Promise<Wanted> {
  const hasSubject = [tenantId, serverId, customer].some((value) => value !== undefined);
  if (!hasSubject && state !== 'ignored') return { count: Number.POSITIVE_INFINITY, allocationIds: null };
  // A count that does not hold any more is good enough to choose a way.
  const ofState = state === undefined ? (['active', 'ignored'] as const) : ([state] as const);
  const count = sql.join(
    ofState.map((each) => sumOf(each, severities)),
    sql` + `,
  );
  const { rows } = await sql<{ count: number; allocationIds: number[] }>`
    select coalesce(sum(${count}), 0)::int as count, coalesce(array_agg(p.allocation_id), '{}') as allocation_ids
    from finding_projections p join finding_counts c on c.allocation_id = p.allocation_id join tenants t on t.id = p.tenant_id
    where ${isOfSubject({ tenantId, serverId, customer })}`.execute(db);
  const { count: found, allocationIds } = rows[0]!;
  return { count: found, allocationIds: hasSubject ? allocationIds : null };
}

const ofAddresses = ({ allocationIds }: Wanted) =>
  allocationIds === null ? sql`true` : sql`f.allocation_id = any(${allocationIds}::bigint[])`;

const beyondPage = ({ after, cveId }: FindingListQuery) =>
  after === undefined ? sql`true` : cveId === undefined ? beyond(after) : beyondOfCve(after);

/** The place of the page stands outside, where it does not tempt the planner to read the order. */
const sortFirst = (query: FindingListQuery, wanted: Wanted) => sql`
  with f as materialized (${query.state === 'ignored' ? collectIgnored(query, wanted) : collect(query, wanted)})
  select f.* from f where ${beyondPage(query)} order by ${order} limit ${query.limit}`;

const keys = sql`f.allocation_id, f.transport, f.port, f.cve_id, f.is_known_exploited, f.score`;

const collect = (query: FindingListQuery, wanted: Wanted) => sql`
  select ${keys} from ${joined} ${addressJoin}
  where not f.is_upstream and ${ofAddresses(wanted)} and ${sql.join([sql`true`, ...conditions(query)], sql` and `)}`;

/** Each ignore looks up its finding by the whole key; a join would read all findings of the port. */
const collectIgnored = ({ severities, cveId }: FindingListQuery, wanted: Wanted) => sql`
  select f.* from finding_ignores i cross join lateral (
    select ${keys} from findings f where f.allocation_id = i.allocation_id and f.transport = i.transport and f.port = i.port
      and f.cve_id = i.cve_id and f.fingerprint = i.fingerprint and not f.is_upstream and ${ofAddresses(wanted)}
      and ${sql.join([sql`true`, ...conditions({ severities, cveId })], sql` and `)} limit 1) f
  where i.ended_at is null and (i.until is null or i.until > ${now}) and (
    select true from finding_projections p ${addressJoin} join finding_services s on s.allocation_id = p.allocation_id
    where p.allocation_id = i.allocation_id and p.tenant_id = i.tenant_id and p.server_id = i.server_id
      and s.transport = i.transport and s.port = i.port and s.observed_at > ${now} - ${keptFor}::interval limit 1)`;

/**
 * Whether a finding is shown is asked of one after the other, in the order of the index. As joins this would be the planner's to
 * arrange, which takes a finding without an ignore for a rare one, collects them all and compares each with every server.
 */
const readFirst = (query: FindingListQuery, wanted: Wanted) => {
  const { state, severities, cveId } = query;
  return sql`
    select f.allocation_id, f.transport, f.port, f.cve_id from findings f
    where not f.is_upstream and ${ofAddresses(wanted)} and ${beyondPage(query)}
      and ${sql.join([sql`true`, ...conditions({ severities, cveId })], sql` and `)} and (
        select true from finding_projections p ${addressJoin} join finding_services s on s.allocation_id = p.allocation_id ${ignoreJoin}
        where p.allocation_id = f.allocation_id and s.transport = f.transport and s.port = f.port
          and s.observed_at > ${now} - ${keptFor}::interval
          and ${sql.join([sql`true`, ...conditions({ state })], sql` and `)} limit 1)
    order by ${order} limit ${query.limit}`;
};

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
      ${add(sumOf('exploited', wanted))} as known_exploited,
      ${sql.join(countedSeverities.map((severity) => sql`${ofEach(severity)} as ${sql.ref(severity)}`))},
      count(distinct c.server_id) filter (where c.is_wanted and ${sumOf('active', wanted)} > 0)::int as servers,
      coalesce(sum(c.unable), 0)::int as unable, max(c.checked_at) as checked_at, min(c.database_at) as database_at
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
      ${active(sql`f.is_known_exploited`)} as known_exploited, ${sql.join(
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
