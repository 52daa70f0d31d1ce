/** Open ports of servers' addresses, of each profile apart (NET-2.7.10), and what was read of their services. */

import { type RawBuilder, sql } from 'kysely';
import {
  fingerprintSoftware,
  type ScanMethod,
  type ScanProfile,
  type ScanService,
  type ScanTransport,
} from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What a result is about. */
export interface ObservedPlace {
  sensorId: number;
  siteId: number;
  clusterId: number;
  serverId: number;
  address: string;
  profile: ScanProfile;
}

/**
 * Keeps these open ports, which are distinct. A result that arrives late never replaces a newer observation. A port that
 * stayed open keeps the time of its first observation; one that was closed, or not seen for seven days, begins anew.
 */
export async function upsertObservations(
  trx: Queryable,
  place: ObservedPlace,
  services: readonly ScanService[],
): Promise<void> {
  if (services.length === 0) return;
  await sql`
    insert into scan_observations as held (cluster_id, vm_id, address, profile, transport, port, site_id, sensor_id,
      first_observed_at, observed_at, scan_id, service, product, version, extra_info, method, confidence, tunnel, cpe)
    select ${place.clusterId}, ${place.serverId}, ${place.address}::inet, ${place.profile}, g.transport, g.port,
      ${place.siteId}, ${place.sensorId}, least(g.first_observed_at, g.observed_at, svc_now()),
      least(g.observed_at, svc_now()), g.scan_id, g.service, g.product, g.version, g.extra_info, g.method, g.confidence,
      g.tunnel, g.cpe
    from jsonb_to_recordset(${JSON.stringify(services)}::jsonb) as g(transport text, port int,
      first_observed_at timestamptz, observed_at timestamptz, scan_id uuid, service text, product text, version text,
      extra_info text, method text, confidence int, tunnel text, cpe text[])
    where g.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval
    order by g.transport, g.port
    on conflict (cluster_id, vm_id, address, profile, transport, port) do update set site_id = excluded.site_id,
      sensor_id = excluded.sensor_id,
      first_observed_at = case when held.closed_at is null and held.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval
        then least(held.first_observed_at, excluded.first_observed_at) else excluded.first_observed_at end,
      observed_at = excluded.observed_at, scan_id = excluded.scan_id, service = excluded.service,
      product = excluded.product, version = excluded.version, extra_info = excluded.extra_info,
      method = excluded.method, confidence = excluded.confidence, tunnel = excluded.tunnel, cpe = excluded.cpe,
      closed_at = null
    where excluded.observed_at >= greatest(held.observed_at, held.closed_at)`.execute(trx);
}

/**
 * Ports of this profile and transport that a complete scan did not find open any more. What was seen since it began stays. No
 * port closes before it was seen, also where a scan says that it ended before it began.
 */
export async function closeUnseen(
  trx: Queryable,
  place: ObservedPlace,
  scan: { transport: ScanTransport; openPorts: readonly number[]; startedAt: string; finishedAt: string },
): Promise<void> {
  await sql`
    update scan_observations set closed_at = least(greatest(${scan.startedAt}::timestamptz, ${scan.finishedAt}::timestamptz), svc_now())
    where cluster_id = ${place.clusterId} and vm_id = ${place.serverId} and address = ${place.address}::inet
      and profile = ${place.profile} and transport = ${scan.transport} and closed_at is null
      and observed_at < ${scan.startedAt}::timestamptz
        and port <> all(${[...scan.openPorts]}::int[])`.execute(trx);
}

// What scans read of services, with the time of the reading. It holds until a newer reading or for seven days; newer scans that
// only saw the port open do not change it (NET-2.7.5, NET-2.7.10).

/** Keeps what these services were identified as, in any order of the scans: the newest reading of each profile holds. */
export async function upsertIdentifications(
  trx: Queryable,
  place: ObservedPlace,
  identified: readonly ScanService[],
): Promise<void> {
  if (identified.length === 0) return;
  await sql`
    insert into scan_identifications as held (cluster_id, vm_id, address, transport, port, profile, identified_at, scan_id,
      service, product, version, extra_info, confidence, tunnel, cpe)
    select ${place.clusterId}, ${place.serverId}, ${place.address}::inet, g.transport, g.port, ${place.profile},
      least(g.observed_at, svc_now()), g.scan_id, g.service, g.product, g.version, g.extra_info, g.confidence, g.tunnel, g.cpe
    from jsonb_to_recordset(${JSON.stringify(identified)}::jsonb) as g(transport text, port int, observed_at timestamptz,
      scan_id uuid, service text, product text, version text, extra_info text, confidence int, tunnel text, cpe text[])
    where g.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval
    order by g.transport, g.port
    on conflict (cluster_id, vm_id, address, transport, port, profile) do update set
      identified_at = excluded.identified_at, scan_id = excluded.scan_id, service = excluded.service,
      product = excluded.product, version = excluded.version, extra_info = excluded.extra_info,
      confidence = excluded.confidence, tunnel = excluded.tunnel, cpe = excluded.cpe
    where (excluded.identified_at, excluded.scan_id) > (held.identified_at, held.scan_id)`.execute(trx);
}

/** Joins to a port `p` the newest reading `i` of its service; no row where there is none of the last seven days. */
export const joinIdentification = sql`
  left join lateral (
    select i.*, max(i.identified_at) filter (where i.profile = 'common') over () as common_at,
      max(i.identified_at) filter (where i.profile = 'full') over () as full_at
    from scan_identifications i
    where i.cluster_id = p.cluster_id and i.vm_id = p.vm_id and i.address = p.address and i.transport = p.transport
      and i.port = p.port and i.identified_at > svc_now() - ${sql.lit(kept.scans)}::interval
    order by i.identified_at desc, i.profile limit 1) i on true`;

/** Of the reading where there is one, else of the port as it was observed last. */
export const known = (column: string, ofPort: string = column) =>
  sql`case when i.identified_at is null then ${sql.ref(`p.${ofPort}`)} else ${sql.ref(`i.${column}`)} end`;

const same = ['service', 'product', 'version', 'confidence', 'tunnel', 'cpe'] as const;
type Answer = (typeof same)[number];

/** Columns of what is known of a service: those of `ServiceOfPort` that are named. */
export const knownColumns = (columns: readonly Answer[]) =>
  sql.join([
    sql`${known('extra_info')} as extra_info, case when i.identified_at is null then p.method else 'probed' end as method`,
    ...columns.map((column) => sql`${known(column)} as ${sql.ref(column)}`),
  ]);

/**
 * An open port with the newest evidence of what it runs, exactly as it is retained: scan and times are those of the scans that
 * identified it; of a port that none identified, those that saw it open.
 */
export interface ServiceEvidenceAt {
  clusterId: number;
  serverId: number;
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
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<ServiceEvidenceAt[]> {
  const { rows } = await sql<Omit<ServiceEvidenceAt, 'fingerprint'>>`
    with ports as (
      select distinct on (o.cluster_id, o.vm_id, o.address, o.transport, o.port) o.*,
        min(o.first_observed_at) over port as first_at,
        max(o.observed_at) filter (where o.profile = 'common') over port as common_at,
        max(o.observed_at) filter (where o.profile = 'full') over port as full_at
      from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ serverId }) => serverId)}::bigint[])
        as a(cluster_id, vm_id)
      join scan_observations o on o.cluster_id = a.cluster_id and o.vm_id = a.vm_id
      where o.closed_at is null and o.observed_at > svc_now() - ${sql.lit(kept.scans)}::interval
      window port as (partition by o.cluster_id, o.vm_id, o.address, o.transport, o.port)
      order by o.cluster_id, o.vm_id, o.address, o.transport, o.port, o.observed_at desc, o.profile)
    select p.cluster_id, p.vm_id as server_id, host(p.address) as address, p.transport, p.port,
      ${known('scan_id')} as scan_id, ${ms(sql`p.first_at`)} as first_observed_at_ms,
      ${ms(known('identified_at', 'observed_at'))} as observed_at_ms, ${ms(known('common_at'))} as common_at_ms,
      ${ms(known('full_at'))} as full_at_ms, ${knownColumns(['service', 'product', 'version', 'confidence', 'cpe'])}
    from ports p ${joinIdentification}
    order by p.cluster_id, p.vm_id, p.address, p.transport, p.port`.execute(db);
  return rows.map((row) => ({ ...row, fingerprint: fingerprintSoftware(row) }));
}
