/** Open ports of servers' addresses, of each profile apart (NET-2.7.10). */

import { sql } from 'kysely';
import type { ScanProfile, ScanService, ScanTransport } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What a result is about. */
export interface ObservedPlace {
  sensorId: number;
  siteId: number;
  clusterId: number;
  vmId: number;
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
    select ${place.clusterId}, ${place.vmId}, ${place.address}::inet, ${place.profile}, g.transport, g.port,
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
    where cluster_id = ${place.clusterId} and vm_id = ${place.vmId} and address = ${place.address}::inet
      and profile = ${place.profile} and transport = ${scan.transport} and closed_at is null
      and observed_at < ${scan.startedAt}::timestamptz and port <> all(${[...scan.openPorts]}::int[])`.execute(
    trx,
  );
}
