/** Assessments that operations is told about, by server and address. */

import { sql } from 'kysely';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { reasonOf } from './assessing/server-store.ts';
import { isOfIgnore, isOpenIgnore } from './ignores/store.ts';
import type { AssessedService } from './read-store.ts';

export interface ProjectedAddress {
  clusterId: number;
  serverId: number;
  address: string;
}

/** An address whose newest check operations does not have. */
export interface DeliverablePlace extends ProjectedAddress {
  checkedAtMs: number;
}

const ms = (column: string) => sql`floor(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

/**
 * Addresses in these clusters whose newest check operations did not answer about under this connection. One that it did not take
 * is due again ten minutes later.
 */
export async function listDeliverable(
  db: Queryable,
  clusterIds: readonly number[],
  connectionRevision: number,
): Promise<DeliverablePlace[]> {
  const { rows } = await sql<DeliverablePlace>`
    select p.cluster_id, p.vm_id as server_id, host(p.address) as address, ${ms('s.checked_at')} as checked_at_ms
    from vulnerability_projections p
    join vulnerability_servers s on s.cluster_id = p.cluster_id and s.vm_id = p.vm_id and s.checked_at is not null
    where p.cluster_id = any(${[...clusterIds]}::bigint[]) and (p.told_check is distinct from s.checked_at
      or p.told_revision is distinct from ${connectionRevision}::bigint
      or p.outcome in ('unmatched', 'source_conflict') and p.answered_at < svc_now() - interval '10 minutes')
    order by p.answered_at nulls first, p.cluster_id, p.vm_id, p.address`.execute(db);
  return rows as DeliverablePlace[];
}

/** What is known of an address: its newest evidence and the check of its server. */
export interface PlaceState extends DeliverablePlace {
  scanId: string;
  evidenceAtMs: number;
}

/** A service as operations is told about it. */
export interface ProjectedService
  extends Omit<
    AssessedService,
    | 'transport'
    | 'firstObservedAtMs'
    | 'commonAtMs'
    | 'fullAtMs'
    | 'service'
    | 'extraInfo'
    | 'productKey'
    | 'isJudged'
  > {
  transport: ScanTransport;
  /** Numbers of findings that operators ignore. */
  ignored: string[];
}

const isOf = (alias: string, places: readonly ProjectedAddress[]) =>
  sql`(${sql.ref(`${alias}.cluster_id`)}, ${sql.ref(`${alias}.vm_id`)}, ${sql.ref(`${alias}.address`)}) in (
    select * from unnest(${places.map(({ clusterId }) => clusterId)}::bigint[],
      ${places.map(({ serverId }) => serverId)}::bigint[], ${places.map(({ address }) => address)}::inet[]))`;

export async function readPlaces(db: Queryable, places: readonly ProjectedAddress[]): Promise<PlaceState[]> {
  const { rows } = await sql<PlaceState>`
    select p.cluster_id, p.vm_id as server_id, host(p.address) as address, p.scan_id,
      ${ms('p.evidence_at')} as evidence_at_ms, ${ms('s.checked_at')} as checked_at_ms
    from vulnerability_projections p
    join vulnerability_servers s on s.cluster_id = p.cluster_id and s.vm_id = p.vm_id and s.checked_at is not null
    where ${isOf('p', places)}`.execute(db);
  return rows as PlaceState[];
}

export async function listProjected(
  db: Queryable,
  places: readonly ProjectedAddress[],
): Promise<ProjectedService[]> {
  const { rows } = await sql<ProjectedService>`
    select v.cluster_id, v.vm_id as server_id, host(v.address) as address, v.transport, v.port, v.scan_id,
      ${ms('v.observed_at')} as observed_at_ms, v.fingerprint, v.product, v.version, ${reasonOf} as reason,
      v.software_id, ${ms('w.database_at')} as database_at_ms, coalesce(w.left_out, 0) as left_out,
      array(select i.cve from vulnerability_ignores i where ${isOfIgnore} and ${isOpenIgnore}) as ignored
    from vulnerability_services v left join vulnerability_software w on w.id = v.software_id
    where ${isOf('v', places)} order by v.cluster_id, v.vm_id, v.address, v.transport, v.port`.execute(db);
  return rows;
}

/** What operations answered about a check of an address. */
export interface AnsweredPlace extends DeliverablePlace {
  connectionRevision: number;
  outcome: string;
}

export async function noteAnswers(trx: Queryable, answers: readonly AnsweredPlace[]): Promise<void> {
  await sql`
    update vulnerability_projections p set told_check = 'epoch'::timestamptz + g."checkedAtMs" * interval '1 millisecond',
      told_revision = g."connectionRevision", outcome = g.outcome, answered_at = svc_now()
    from jsonb_to_recordset(${JSON.stringify(answers)}::jsonb) as g("clusterId" bigint, "serverId" bigint, address inet,
      "checkedAtMs" float8, "connectionRevision" bigint, outcome text)
    where p.cluster_id = g."clusterId" and p.vm_id = g."serverId" and p.address = g.address`.execute(trx);
}
