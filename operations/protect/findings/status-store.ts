/** How the delivery of potential vulnerabilities of a server stands (NET-2.9, NET-4.10). */

import { sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { FindingSubject } from './finding.ts';

/** Without an accepted check for so long, refused deliveries are what holds it back: the daily check is missing. */
const silence = sql.lit('25 hours');

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

export async function readStatus(
  db: Queryable,
  { serverId, tenantId }: FindingSubject,
): Promise<FindingStatus> {
  const { rows } = await sql<FindingStatus>`
    select max(attempted_at) as "attemptedAt", max(received_at) as "receivedAt", max(checked_at) as "latestAt",
      count(*)::int as addresses, coalesce(sum((select count(*) from finding_services s
        where s.allocation_id = p.allocation_id and s.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval)), 0)::int as services,
      coalesce(max(refused_at) > max(received_at) + ${silence}::interval, false) as "isRefused"
    from finding_projections p
    where server_id = ${serverId} and tenant_id = ${tenantId} and scan_id is not null`.execute(db);
  return rows[0]!;
}

/** Notes a delivery that was refused; nothing where no source has delivered yet. */
export async function noteRefusal(tx: Queryable, allocationId: number): Promise<void> {
  await sql`update finding_projections set attempted_at = svc_now(), refused_at = svc_now()
    where allocation_id = ${allocationId}`.execute(tx);
}
