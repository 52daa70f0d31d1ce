/** How the delivery of attacks of a server stands (NET-2.9, NET-4.10). */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface IncidentStatus {
  /** Of a delivery, also one that was refused or repeated. */
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** The newest observation that was received. */
  latestAt: Date | null;
  /** Of the last 24 hours. */
  incidents: number;
  addresses: number;
  /** The last delivery was about another address, or came from another source. */
  isRefused: boolean;
}

export async function readStatus(
  db: Queryable,
  of: { serverId: number; tenantId: number },
): Promise<IncidentStatus> {
  const { rows } = await sql<IncidentStatus>`
    with held as (
      select address, last_observed_at, source_seen_at, (select max(refused_at) from protect_incident_refusals r
        where r.incident_id = i.incident_id and r.outcome = 'identity_conflict') as refused_at
      from protect_incidents i where server_id = ${of.serverId} and tenant_id = ${of.tenantId})
    select max(greatest(source_seen_at, refused_at)) as "attemptedAt", max(source_seen_at) as "receivedAt",
      max(last_observed_at) as "latestAt",
      count(*) filter (where last_observed_at > svc_now() - interval '24 hours')::int as incidents,
      count(distinct address) filter (where last_observed_at > svc_now() - interval '24 hours')::int as addresses,
      coalesce(max(refused_at) > max(source_seen_at), false) as "isRefused"
    from held`.execute(db);
  return rows[0]!;
}
