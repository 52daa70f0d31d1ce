import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { defaultSchedule, type ScanSchedule } from './schedule.ts';

/** The schedule of a site, and who set it. */
export interface SiteSchedule extends ScanSchedule {
  /** Null: the default was never changed. */
  changedBy: string | null;
}

export async function readSchedule(db: Queryable, siteId: number): Promise<SiteSchedule> {
  const { rows } = await sql<SiteSchedule>`
    select at_time as time, time_zone as zone, changed_by as "changedBy" from scan_schedules where site_id = ${siteId}`.execute(
    db,
  );
  return rows[0] ?? { ...defaultSchedule, changedBy: null };
}

export async function writeSchedule(
  trx: Queryable,
  siteId: number,
  { time, zone }: ScanSchedule,
  changedBy: string,
): Promise<void> {
  await sql`
    insert into scan_schedules (site_id, at_time, time_zone, changed_by) values (${siteId}, ${time}, ${zone}, ${changedBy})
    on conflict (site_id) do update set at_time = excluded.at_time, time_zone = excluded.time_zone,
      changed_at = svc_now(), changed_by = excluded.changed_by`.execute(trx);
}
