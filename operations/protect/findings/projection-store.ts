/** Every statement that stores what a monitor says of potential vulnerabilities. */

import { sql } from 'kysely';
import type { ProjectedFinding, ProjectedService, Projection } from '#contracts/admin-api/vulnerabilities.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Source } from '../traffic/index.ts';
import { listExpired, storeCounts } from './count-store.ts';

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
    select (project_id, source_site_id) = (${projectId}::bigint, ${siteId}::bigint) as "isOwner",
      received_at <= svc_now() - ${silence}::interval as "isSilent",
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
    returning transport, port, fingerprint, cve_id as "cveId", severity, is_upstream as "isUpstream"`.execute(
    tx,
  );
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
