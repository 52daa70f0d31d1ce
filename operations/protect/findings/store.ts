/** Every statement on what monitors deliver of potential vulnerabilities, their counts, mails, and what customers ignore. */

import { sql } from 'kysely';
import type { ProjectedFinding, ProjectedService, Projection } from '#contracts/admin-api/vulnerabilities.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import { type ListedInMail, mailableMembers } from '#operations/views/alert-mail-store.ts';
import { countFindings, isOutdated as isOutdatedCount } from '#operations/views/finding-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Source } from '../traffic/index.ts';
import type { FindingKey, FindingSubject } from './finding.ts';

/** Evidence is kept for seven days (NET-8.R4). */
const keptFor = sql.lit(kept.scans);
/** A source that has delivered nothing for so long loses a generation to the next one; every address is checked daily. */
const silence = sql.lit('27 hours');

export interface Generation {
  id: number;
  tenantId: number;
  serverId: number;
  address: string;
}

/** How a check stands to the one that is held. */
export type Age = 'newer' | 'same' | 'older' | 'expired';

/**
 * Makes the projection of a generation for this source unless it exists, and locks it until the transaction ends, so that two
 * deliveries of one generation follow each other. Null while another source delivers it, unless this one owns the minutes.
 */
export async function claimProjection(
  tx: Queryable,
  { id, tenantId, serverId, address }: Generation,
  { projectId, siteId }: Source,
  { checkedAt, ownsMinutes }: { checkedAt: string; ownsMinutes: boolean },
): Promise<Age | null> {
  await sql`
    insert into finding_projections (allocation_id, tenant_id, server_id, address, project_id, source_site_id)
    values (${id}, ${tenantId}, ${serverId}, ${address}, ${projectId}, ${siteId})
    on conflict (allocation_id) do update set attempted_at = svc_now()`.execute(tx);
  // Compared by PostgreSQL: a Date has no microseconds.
  const { rows } = await sql<{ isOwner: boolean; isSilent: boolean; age: Age }>`
    select (project_id, source_site_id) = (${projectId}::bigint, ${siteId}::bigint) as is_owner,
      received_at <= svc_now() - ${silence}::interval as is_silent,
      case when ${checkedAt}::timestamptz < checked_at then 'older' when ${checkedAt}::timestamptz = checked_at then 'same'
        when ${checkedAt}::timestamptz < svc_now() - ${keptFor}::interval then 'expired' else 'newer' end as age
    from finding_projections where allocation_id = ${id} for update`.execute(tx);
  const row = rows[0]!;
  return row.isOwner || row.isSilent || ownsMinutes ? row.age : null;
}

/** A locked projection that was delivered again, or is not stored: its source was heard. */
export async function noteDelivery(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
): Promise<void> {
  await sql`update finding_projections set project_id = ${projectId}, source_site_id = ${siteId}, received_at = svc_now()
    where allocation_id = ${allocationId}`.execute(tx);
}

/** What a check changed: findings that are new in this version of their service, or rated in another way. */
export interface ChangedFinding {
  transport: ScanTransport;
  port: number;
  fingerprint: string;
  cveId: string;
  severity: ProjectedFinding['severity'];
  isUpstream: boolean;
}

/**
 * Makes a locked projection what this check says, and returns what changed of its findings. Services whose evidence has
 * expired are left out. Rows that say the same already are not written.
 */
export async function putProjection(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
  projection: Projection,
): Promise<ChangedFinding[]> {
  const { scan_id, checked_at, database_at, counts, services } = projection;
  await sql`update finding_projections set project_id = ${projectId}, source_site_id = ${siteId}, received_at = svc_now(),
      scan_id = ${scan_id}::uuid, checked_at = ${checked_at}::timestamptz, database_at = ${database_at}::timestamptz,
      truncated = ${counts.truncated}
    where allocation_id = ${allocationId}`.execute(tx);
  const kept = await putServices(tx, allocationId, services);
  const changed = await putFindings(tx, allocationId, kept);
  await storeCounts(tx, [allocationId]);
  return changed;
}

/** Returns the services that are stored now. */
async function putServices(
  tx: Queryable,
  allocationId: number,
  services: readonly ProjectedService[],
): Promise<ProjectedService[]> {
  const given = JSON.stringify(services.map(({ findings: _, assessment: __, ...service }) => service));
  await sql`
    with sent as (
      select g.* from jsonb_to_recordset(${given}::jsonb) as g(transport text, port int, scan_id uuid, observed_at timestamptz,
        fingerprint text, product text, version text, reason text)
      where g.observed_at >= svc_now() - ${keptFor}::interval),
    gone as (
      delete from finding_services s where allocation_id = ${allocationId}
        and not exists (select 1 from sent where (sent.transport, sent.port) = (s.transport, s.port)))
    insert into finding_services as s (allocation_id, transport, port, scan_id, observed_at, fingerprint, product, version, reason)
    select ${allocationId}, sent.* from sent
    on conflict (allocation_id, transport, port) do update set scan_id = excluded.scan_id, observed_at = excluded.observed_at,
      fingerprint = excluded.fingerprint, product = excluded.product, version = excluded.version, reason = excluded.reason
    where s is distinct from excluded`.execute(tx);
  const { rows } = await sql<{ transport: string; port: number }>`
    select transport, port from finding_services where allocation_id = ${allocationId}`.execute(tx);
  const stored = new Set(rows.map(({ transport, port }) => `${transport}/${port}`));
  return services.filter(({ transport, port }) => stored.has(`${transport}/${port}`));
}

async function putFindings(
  tx: Queryable,
  allocationId: number,
  services: readonly ProjectedService[],
): Promise<ChangedFinding[]> {
  const given = services.flatMap(({ transport, port, fingerprint, assessment, findings }) =>
    findings.map(({ disputed, known_exploited, ...finding }) => ({
      ...{ transport, port, fingerprint, is_upstream: assessment === 'unable' },
      ...{ ...finding, is_disputed: disputed, is_known_exploited: known_exploited },
    })),
  );
  const { rows } = await sql<ChangedFinding>`
    with sent as (
      select g.* from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(transport text, port int, cve_id text,
        fingerprint text, is_upstream boolean, severity text, score float8, cvss_version text, cvss_vector text, summary text,
        published_at timestamptz, modified_at timestamptz, incomplete text, is_disputed boolean, is_known_exploited boolean,
        package jsonb)),
    gone as (
      delete from findings f where allocation_id = ${allocationId} and not exists (
        select 1 from sent where (sent.transport, sent.port, sent.cve_id) = (f.transport, f.port, f.cve_id)))
    insert into findings as f (allocation_id, transport, port, cve_id, fingerprint, is_upstream, severity, score, cvss_version,
      cvss_vector, summary, published_at, modified_at, incomplete, is_disputed, is_known_exploited, package)
    select ${allocationId}, sent.* from sent
    on conflict (allocation_id, transport, port, cve_id) do update set fingerprint = excluded.fingerprint,
      is_upstream = excluded.is_upstream, severity = excluded.severity, score = excluded.score,
      cvss_version = excluded.cvss_version, cvss_vector = excluded.cvss_vector, summary = excluded.summary,
      published_at = excluded.published_at, modified_at = excluded.modified_at, incomplete = excluded.incomplete,
      is_disputed = excluded.is_disputed, is_known_exploited = excluded.is_known_exploited, package = excluded.package
    where f is distinct from excluded
    returning transport, port, fingerprint, cve_id, severity, is_upstream`.execute(tx);
  return rows;
}

/** Deletes at most `limit` services whose evidence has expired, and what nothing refers to any more; returns the larger number. */
export async function deleteExpired(tx: Queryable, limit: number): Promise<number> {
  const services = await storeCounts(tx, await listExpired(tx, limit));
  const projections = await sql`
    delete from finding_projections where allocation_id in (select p.allocation_id from finding_projections p
      where p.checked_at < svc_now() - ${keptFor}::interval and p.received_at < svc_now() - ${keptFor}::interval
        and not exists (select 1 from finding_services s where s.allocation_id = p.allocation_id) limit ${limit})`.execute(
    tx,
  );
  // What has not been found for a year is new when it is found again.
  const known = await sql`
    delete from known_findings where (server_id, transport, port, fingerprint, cve_id) in (
      select k.server_id, k.transport, k.port, k.fingerprint, k.cve_id from known_findings k
      where k.first_at < svc_now() - interval '1 year' and not exists (select 1 from finding_projections p
        join findings f on f.allocation_id = p.allocation_id where p.server_id = k.server_id
          and (f.transport, f.port, f.fingerprint, f.cve_id) = (k.transport, k.port, k.fingerprint, k.cve_id))
      limit ${limit})`.execute(tx);
  const ignores = await sql`
    delete from finding_ignores where id in (select id from finding_ignores
      where least(ended_at, until) < svc_now() - interval '1 year' limit ${limit})`.execute(tx);
  return Math.max(
    services,
    ...[projections, known, ignores].map(({ numAffectedRows }) => Number(numAffectedRows ?? 0n)),
  );
}

/**
 * Counts the findings of these addresses again, without expired evidence, which is deleted; returns the number of its services. Call it after the last change of a transaction: the projections stay locked until it ends,
 * so of two transactions that change one address the later one counts what both have done.
 */
export async function storeCounts(tx: Queryable, allocationIds: readonly number[]): Promise<number> {
  if (allocationIds.length === 0) return 0;
  const ids = sql`any(${[...allocationIds]}::bigint[])`;
  await sql`select from finding_projections where allocation_id = ${ids} order by allocation_id for update`.execute(
    tx,
  );
  const expired = await sql`delete from finding_services
    where allocation_id = ${ids} and observed_at <= svc_now() - ${keptFor}::interval`.execute(tx);
  await sql`
    insert into finding_counts as held (allocation_id, valid_until, active, ignored, exploited, unable)
    ${countFindings(sql`p.allocation_id = ${ids}`)}
    on conflict (allocation_id) do update set valid_from = excluded.valid_from, valid_until = excluded.valid_until,
      active = excluded.active, ignored = excluded.ignored, exploited = excluded.exploited, unable = excluded.unable
    where (held.valid_until, held.active, held.ignored, held.exploited, held.unable)
        is distinct from (excluded.valid_until, excluded.active, excluded.ignored, excluded.exploited, excluded.unable)
      or held.valid_from > excluded.valid_from`.execute(tx);
  return Number(expired.numAffectedRows ?? 0n);
}

/** Addresses whose counts do not hold: evidence has expired, an ignore has ended, or the clock was put back. */
export async function listOutdated(db: Queryable, limit: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select c.allocation_id as id from finding_counts c where ${isOutdatedCount} limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

/** Addresses with expired evidence. */
export async function listExpired(tx: Queryable, limit: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select distinct allocation_id as id from (select allocation_id from finding_services
      where observed_at <= svc_now() - ${keptFor}::interval limit ${limit}) s`.execute(tx);
  return rows.map(({ id }) => id);
}

/** Without an accepted check for so long, refused deliveries are what holds it back: the daily check is missing. */
const refusedFor = sql.lit('25 hours');

export interface FindingStatus {
  /** Of a delivery, also one that was refused or repeated. */
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** The newest check that was received. */
  latestAt: Date | null;
  /** Addresses with a check, and their services. */
  addresses: number;
  services: number;
  /** Deliveries are tried and none of them was taken: another source delivers. */
  isRefused: boolean;
}

/** How the delivery of potential vulnerabilities of a server stands (NET-2.9, NET-4.10). */
export async function readStatus(
  db: Queryable,
  { serverId, tenantId }: FindingSubject,
): Promise<FindingStatus> {
  const { rows } = await sql<FindingStatus>`
    select max(attempted_at) as attempted_at, max(received_at) as received_at, max(checked_at) as latest_at,
      count(*)::int as addresses, coalesce(sum((select count(*) from finding_services s
        where s.allocation_id = p.allocation_id and s.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval)), 0)::int as services,
      coalesce(max(refused_at) > max(received_at) + ${refusedFor}::interval, false) as is_refused
    from finding_projections p
    where server_id = ${serverId} and tenant_id = ${tenantId} and scan_id is not null`.execute(db);
  return rows[0]!;
}

/** Notes a delivery that was refused; nothing where no source has delivered yet. */
export async function noteRefusal(tx: Queryable, allocationId: number): Promise<void> {
  await sql`update finding_projections set attempted_at = svc_now(), refused_at = svc_now()
    where allocation_id = ${allocationId}`.execute(tx);
}

export interface RankedFinding extends ChangedFinding {
  /** As in the list of severities; 0 for what is not rated. */
  rank: number;
}

/** A finding that was not known, or that is rated as more severe than ever before. */
export interface NewsOfFinding {
  transport: ScanTransport;
  port: number;
  fingerprint: string;
  cveId: string;
  /** Before this; -1: it was not known. */
  previousRank: number;
}

/**
 * Notes findings as known with the highest severity that each had, and returns what is new of them. A row is written by one
 * transaction at a time and only by a rise, so that of deliveries at once, of two addresses of a server, one returns it.
 */
export async function noteKnown(
  tx: Queryable,
  { tenantId, serverId }: Pick<Generation, 'tenantId' | 'serverId'>,
  findings: readonly RankedFinding[],
): Promise<NewsOfFinding[]> {
  if (findings.length === 0) return [];
  const given = findings.map(({ transport, port, fingerprint, cveId, rank }) => ({
    ...{ transport, port, fingerprint, cve_id: cveId, rank },
  }));
  const { rows } = await sql<NewsOfFinding>`
    insert into known_findings as k (server_id, tenant_id, transport, port, fingerprint, cve_id, severity_rank)
    select ${serverId}, ${tenantId}, g.transport, g.port, g.fingerprint, g.cve_id, g.rank
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb)
      as g(transport text, port int, fingerprint text, cve_id text, rank int)
    order by g.transport, g.port, g.fingerprint, g.cve_id
    on conflict (server_id, transport, port, fingerprint, cve_id) do update
      set previous_rank = k.severity_rank, severity_rank = excluded.severity_rank
    where k.severity_rank < excluded.severity_rank
    returning transport, port, fingerprint, cve_id, previous_rank`.execute(tx);
  return rows;
}

export type IgnoredKey = Pick<NewsOfFinding, 'transport' | 'port' | 'fingerprint' | 'cveId'>;

/** What the customer ignores of a generation now. */
export async function listIgnored(
  tx: Queryable,
  { id, tenantId, serverId }: Pick<Generation, 'id' | 'tenantId' | 'serverId'>,
): Promise<IgnoredKey[]> {
  const { rows } = await sql<IgnoredKey>`
    select transport, port, fingerprint, cve_id from finding_ignores
    where allocation_id = ${id} and tenant_id = ${tenantId} and server_id = ${serverId} and ended_at is null
      and (until is null or until > svc_now())`.execute(tx);
  return rows;
}

export interface FindingNotice {
  checkedAt: string;
  /** The most severe first. */
  listed: readonly ListedInMail[];
  total: number;
  severity: string;
}

/** A notice with a mail for each member who may be mailed. */
export async function queueMails(
  tx: Queryable,
  { tenantId, serverId, address }: Generation,
  { checkedAt, listed, total, severity }: FindingNotice,
): Promise<void> {
  await sql`
    with notice as (
      insert into finding_notices (tenant_id, server_id, address, checked_at, listed, total, severity)
      values (${tenantId}, ${serverId}, ${address}, ${checkedAt}::timestamptz, ${JSON.stringify(listed)}::jsonb, ${total},
        ${severity}) returning id)
    insert into finding_mails (notice_id, person_id)
    select notice.id, reader.id from notice, (${mailableMembers(serverId)}) reader`.execute(tx);
}

/** Deletes at most `limit` notices of more than seven days, with their mails; returns how many. */
export async function deleteExpiredNotices(tx: Queryable, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from finding_notices where id in (select id from finding_notices
      where created_at < svc_now() - interval '7 days' limit ${limit})`.execute(tx);
  return Number(numAffectedRows ?? 0n);
}

/** A finding of a server as an ignore is bound to it: one generation, port, version and CVE (NET-2.6.5). */
export interface BoundFinding extends Omit<FindingKey, 'address'> {
  allocationId: number;
}

/** Whether the server has the finding now. */
export async function hasFinding(
  tx: Queryable,
  { serverId, tenantId }: FindingSubject,
  { allocationId, transport, port, fingerprint, cveId }: BoundFinding,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from finding_projections p join findings f on f.allocation_id = p.allocation_id
      join finding_services s on s.allocation_id = f.allocation_id and s.transport = f.transport and s.port = f.port
    where p.server_id = ${serverId} and p.tenant_id = ${tenantId} and p.allocation_id = ${allocationId}
      and f.transport = ${transport} and f.port = ${port} and f.fingerprint = ${fingerprint} and f.cve_id = ${cveId}
      and not f.is_upstream and s.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval`.execute(tx);
  return rows.length > 0;
}

/** Whether an ignore holds for a finding now. */
export async function isIgnored(
  tx: Queryable,
  { serverId, tenantId }: FindingSubject,
  { allocationId, transport, port, fingerprint, cveId }: BoundFinding,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from finding_ignores
    where server_id = ${serverId} and tenant_id = ${tenantId} and allocation_id = ${allocationId}
      and transport = ${transport} and port = ${port} and fingerprint = ${fingerprint} and cve_id = ${cveId}
      and ended_at is null and (until is null or until > svc_now())`.execute(tx);
  return rows.length > 0;
}

/** Makes an ignore in the place of ended and lapsed ones of the same finding, so that their number stays bounded. */
export async function insertIgnore(
  tx: Queryable,
  { serverId, tenantId }: FindingSubject,
  { allocationId, transport, port, fingerprint, cveId }: BoundFinding,
  given: { reason: string; until: Date | null; personId: number; isByKey: boolean },
): Promise<void> {
  await sql`
    delete from finding_ignores where server_id = ${serverId} and tenant_id = ${tenantId}
      and allocation_id = ${allocationId} and transport = ${transport} and port = ${port}
      and fingerprint = ${fingerprint} and cve_id = ${cveId}`.execute(tx);
  await sql`
    insert into finding_ignores (tenant_id, server_id, allocation_id, transport, port, fingerprint, cve_id, reason, person_id,
      is_by_key, until)
    values (${tenantId}, ${serverId}, ${allocationId}, ${transport}, ${port}, ${fingerprint}, ${cveId}, ${given.reason},
      ${given.personId}, ${given.isByKey}, ${given.until})`.execute(tx);
}

/** Ends the ignore of a finding; false where none holds. */
export async function endIgnore(
  tx: Queryable,
  { serverId, tenantId }: FindingSubject,
  { allocationId, transport, port, fingerprint, cveId }: BoundFinding,
): Promise<boolean> {
  const { rows } = await sql`
    update finding_ignores set ended_at = svc_now()
    where server_id = ${serverId} and tenant_id = ${tenantId} and allocation_id = ${allocationId}
      and transport = ${transport} and port = ${port} and fingerprint = ${fingerprint} and cve_id = ${cveId}
      and ended_at is null and (until is null or until > svc_now()) returning 1`.execute(tx);
  return rows.length > 0;
}
