/** What open ports of servers said of themselves, as evidence of the software that they run. */
import { sql } from 'kysely';
import { fingerprintSoftware, type ScanTransport } from '#contracts/port-scan/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** An open port by the newer of its two observations, exactly as it is retained. */
export interface ServiceEvidenceAt {
  clusterId: number;
  vmId: number;
  address: string;
  transport: ScanTransport;
  port: number;
  scanId: string;
  firstObservedAtMs: number;
  observedAtMs: number;
  /** When scans of each profile saw it last. */
  commonAtMs: number | null;
  fullAtMs: number | null;
  service: string | null;
  product: string | null;
  version: string | null;
  extraInfo: string | null;
  method: 'probed' | 'table';
  confidence: number;
  cpe: string[];
  /** Of product and version. */
  fingerprint: string;
}

const ms = (column: string) => sql`floor(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

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
      where o.closed_at is null and o.observed_at > svc_now() - interval '7 days'
      window port as (partition by o.cluster_id, o.vm_id, o.address, o.transport, o.port)
      order by o.cluster_id, o.vm_id, o.address, o.transport, o.port, o.observed_at desc, o.profile)
    select p.cluster_id as "clusterId", p.vm_id as "vmId", host(p.address) as address, p.transport, p.port,
      p.scan_id as "scanId", ${ms('p.first_at')} as "firstObservedAtMs", ${ms('p.observed_at')} as "observedAtMs",
      ${ms('p.common_at')} as "commonAtMs", ${ms('p.full_at')} as "fullAtMs", p.service, p.product, p.version,
      p.extra_info as "extraInfo", p.method, p.confidence, p.cpe
    from ports p order by p.cluster_id, p.vm_id, p.address, p.transport, p.port`.execute(db);
  return rows.map((row) => ({ ...row, fingerprint: fingerprintSoftware(row) }));
}
