/** What was found that is new, and the mails about it that wait to be sent (`alert-mails`). */
import { sql } from 'kysely';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import { type ListedInMail, mailableMembers } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ChangedFinding, Generation } from './projection-store.ts';

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
    returning transport, port, fingerprint, cve_id as "cveId", previous_rank as "previousRank"`.execute(tx);
  return rows;
}

export type IgnoredKey = Pick<NewsOfFinding, 'transport' | 'port' | 'fingerprint' | 'cveId'>;

/** What the customer ignores of a generation now. */
export async function listIgnored(
  tx: Queryable,
  { id, tenantId, serverId }: Pick<Generation, 'id' | 'tenantId' | 'serverId'>,
): Promise<IgnoredKey[]> {
  const { rows } = await sql<IgnoredKey>`
    select transport, port, fingerprint, cve_id as "cveId" from finding_ignores
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
