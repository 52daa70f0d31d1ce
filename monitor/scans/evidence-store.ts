/** What open ports of servers said of themselves, as evidence of the software that they run. */

import { type RawBuilder, sql } from 'kysely';
import { fingerprintSoftware, type ScanMethod, type ScanTransport } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { joinIdentification, known, knownColumns } from './identification-store.ts';

/**
 * An open port with the newest evidence of what it runs, exactly as it is retained: scan and times are those of the scans that
 * identified it; of a port that none identified, those that saw it open.
 */
export interface ServiceEvidenceAt {
  clusterId: number;
  vmId: number;
  address: string;
  transport: ScanTransport;
  port: number;
  scanId: string;
  firstObservedAtMs: number;
  observedAtMs: number;
  /** Of the newest scan of each profile. */
  commonAtMs: number | null;
  fullAtMs: number | null;
  service: string | null;
  product: string | null;
  version: string | null;
  extraInfo: string | null;
  method: ScanMethod;
  confidence: number;
  cpe: string[];
  /** Of product and version. */
  fingerprint: string;
}

const ms = (time: RawBuilder<unknown>) => sql`floor(extract(epoch from ${time}) * 1000)::float8`;

/** Of these servers, by server, address and port. What was seen more than seven days ago is no evidence any more. */
export async function listEvidence(
  db: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<ServiceEvidenceAt[]> {
  const { rows } = await sql<Omit<ServiceEvidenceAt, 'fingerprint'>>`
    with ports as (
      select distinct on (o.cluster_id, o.vm_id, o.address, o.transport, o.port) o.*,
        min(o.first_observed_at) over port as first_at,
        max(o.observed_at) filter (where o.profile = 'common') over port as common_at,
        max(o.observed_at) filter (where o.profile = 'full') over port as full_at
      from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ vmId }) => vmId)}::bigint[])
        as a(cluster_id, vm_id)
      join scan_observations o on o.cluster_id = a.cluster_id and o.vm_id = a.vm_id
      where o.closed_at is null and o.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval
      window port as (partition by o.cluster_id, o.vm_id, o.address, o.transport, o.port)
      order by o.cluster_id, o.vm_id, o.address, o.transport, o.port, o.observed_at desc, o.profile)
    select p.cluster_id as "clusterId", p.vm_id as "vmId", host(p.address) as address, p.transport, p.port,
      ${known('scan_id')} as "scanId", ${ms(sql`p.first_at`)} as "firstObservedAtMs",
      ${ms(known('identified_at', 'observed_at'))} as "observedAtMs", ${ms(known('common_at'))} as "commonAtMs",
      ${ms(known('full_at'))} as "fullAtMs", ${knownColumns(['service', 'product', 'version', 'confidence', 'cpe'])}
    from ports p ${joinIdentification} order by p.cluster_id, p.vm_id, p.address, p.transport, p.port`.execute(
    db,
  );
  return rows.map((row) => ({ ...row, fingerprint: fingerprintSoftware(row) }));
}
