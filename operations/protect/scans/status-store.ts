/** How the delivery of scans of a server stands (NET-2.9, NET-4.10). */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Without an accepted scan for so long, refused deliveries are what holds it back: the hourly scan is missing. */
const silence = sql.lit('2 hours');

export interface ScanStatus {
  /** Of a delivery, also one that was refused or repeated. */
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** End of the newest scan that was received. */
  latestAt: Date | null;
  /** Addresses with results, and the results of the last 24 hours. */
  addresses: number;
  scans: number;
  /** Deliveries are tried and none of them was taken: another source delivers. */
  isRefused: boolean;
}

export async function readStatus(
  db: Queryable,
  of: { serverId: number; tenantId: number },
): Promise<ScanStatus> {
  const { rows } = await sql<ScanStatus>`
    select max(attempted_at) as "attemptedAt", max(received_at) filter (where latest.at is not null) as "receivedAt",
      max(latest.at) as "latestAt", count(latest.at)::int as addresses, coalesce(sum(day.scans), 0)::int as scans,
      coalesce(max(refused_at) > max(received_at) + ${silence}::interval, false) as "isRefused"
    from port_scan_series series
    left join lateral (select finished_at as at from port_scans
      where allocation_id = series.allocation_id order by finished_at desc limit 1) latest on true
    left join lateral (select count(*) as scans from port_scans
      where allocation_id = series.allocation_id and finished_at > svc_now() - interval '24 hours') day on true
    where server_id = ${of.serverId} and tenant_id = ${of.tenantId}`.execute(db);
  return rows[0]!;
}

/** Notes a delivery that was refused; nothing where no source has delivered yet. */
export async function noteRefusal(tx: Queryable, allocationId: number): Promise<void> {
  await sql`update port_scan_series set attempted_at = svc_now(), refused_at = svc_now()
    where allocation_id = ${allocationId}`.execute(tx);
}
