/** Every statement on what customers ignore. */

import { sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FindingKey, FindingSubject } from './finding.ts';

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
