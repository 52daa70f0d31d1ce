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
  f.allocation_id as "allocationId", p.address, f.transport, f.port, s.product, s.version, f.fingerprint,
  s.scan_id as "scanId", s.observed_at as "observedAt", p.checked_at as "checkedAt", f.cve_id as "cveId", f.severity, f.score,
  f.cvss_version as "cvssVersion", f.cvss_vector as "cvssVector", f.summary, f.published_at as "publishedAt",
  f.modified_at as "modifiedAt", f.incomplete, f.is_disputed as "isDisputed", f.is_known_exploited as "isKnownExploited",
  f.package,
  (select k.first_at from known_findings k where k.server_id = p.server_id and k.tenant_id = p.tenant_id
    and k.transport = f.transport and k.port = f.port and k.fingerprint = f.fingerprint and k.cve_id = f.cve_id) as "firstFoundAt",
  case when i.id is null then 'active' else 'ignored' end as state,
  i.reason as "ignoreReason", i.created_at as "ignoredAt", i.until as "ignoredUntil",
  (select name from people where id = i.person_id) as "ignoredBy", i.is_by_key as "isIgnoredByKey"`;

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
    select p.address, s.transport, s.port, s.product, s.version, s.fingerprint, s.reason, s.scan_id as "scanId",
      s.observed_at as "observedAt", (select count(*) from findings f where f.allocation_id = s.allocation_id
        and f.transport = s.transport and f.port = s.port and f.is_upstream)::int as "upstreamCount"
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
      count(*) filter (where i.id is null and f.is_known_exploited)::int as "knownExploited",
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
    select coalesce(sum(p.truncated), 0)::float8 as truncated, min(p.checked_at) as "checkedAt",
      min(p.database_at) as "databaseAt"
    from finding_projections p where ${ofServer(of)}`.execute(db);
  return { ...counts.rows[0]!, ...services.rows[0]!, ...checks.rows[0]! };
}
