/** Whose scans are whose, for what is built on them. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Source } from '../traffic/index.ts';

/** As in `port-store.ts`: who is silent for so long loses an address. */
const silence = sql.lit('3 hours');

/** Whether one of these scans is known as one of another generation. A scan that is not known yet may be of any. */
export async function hasForeignScan(
  tx: Queryable,
  allocationId: number,
  scanIds: readonly string[],
): Promise<boolean> {
  const { rows } = await sql<{ isForeign: boolean }>`
    select exists (select 1 from port_scans where scan_id = any(${[...scanIds]}::uuid[]) and allocation_id <> ${allocationId})
      or exists (select 1 from scan_requests where id = any(${[...scanIds]}::uuid[]) and allocation_id <> ${allocationId})
      as "isForeign"`.execute(tx);
  return rows[0]!.isForeign;
}

/** Whether another source delivers the scans of a generation. */
export async function isDeliveredByOther(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from port_scan_series where allocation_id = ${allocationId}
      and (project_id, source_site_id) <> (${projectId}::bigint, ${siteId}::bigint)
      and received_at > svc_now() - ${silence}::interval`.execute(tx);
  return rows.length > 0;
}
