/**
 * What scans read of services, with the time of the reading. It holds until a newer reading or for seven days; newer scans that
 * only saw the port open do not change it (NET-2.7.5, NET-2.7.10).
 */

import { sql } from 'kysely';
import type { ScanService } from '#contracts/port-scan/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ObservedPlace } from './observation-store.ts';

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
    select ${place.clusterId}, ${place.vmId}, ${place.address}::inet, g.transport, g.port, ${place.profile},
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
    sql`${known('extra_info')} as "extraInfo", case when i.identified_at is null then p.method else 'probed' end as method`,
    ...columns.map((column) => sql`${known(column)} as ${sql.ref(column)}`),
  ]);
