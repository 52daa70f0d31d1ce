/** Which source owns a generation, who is refused, and which minutes were set aside. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Who delivers: a site of a monitor that uses the admin API as this project. */
export interface Source {
  projectId: number;
  siteId: number;
}

/** An owner that has delivered nothing for so long loses a generation to the next source that delivers it. */
const silence = sql.lit('15 minutes');

/**
 * Makes the series of a generation for this source unless it exists; true when the source owns it, which it does from now
 * on where the owner has been silent. The row stays locked until the transaction ends, so that two deliveries of one
 * generation follow each other. Who is refused is noted, for operators.
 */
export async function claimSeries(
  tx: Queryable,
  allocation: { id: number; tenantId: number; serverId: number; address: string },
  source: Source,
): Promise<boolean> {
  const { projectId, siteId } = source;
  let series = await lockSeries(tx, allocation.id, source);
  if (!series) {
    await sql`insert into protect_series (allocation_id, tenant_id, server_id, address, source_project_id, source_site_id)
      values (${allocation.id}, ${allocation.tenantId}, ${allocation.serverId}, ${allocation.address}, ${projectId}, ${siteId})
      on conflict (allocation_id) do nothing`.execute(tx);
    series = (await lockSeries(tx, allocation.id, source))!;
  }
  const { isOwner, isSilent, isNoted } = series;
  if (isOwner && isNoted) return true;
  if (!isOwner && !isSilent) {
    await sql`update protect_series set waiting_project_id = ${projectId}, waiting_site_id = ${siteId}, waiting_at = svc_now()
      where allocation_id = ${allocation.id}`.execute(tx);
    return false;
  }
  await sql`update protect_series set source_project_id = ${projectId}, source_site_id = ${siteId},
      source_seen_at = svc_now(), taken_over_at = ${isOwner ? sql`taken_over_at` : sql`svc_now()`},
      waiting_project_id = ${isOwner ? sql`waiting_project_id` : sql`null`},
      waiting_site_id = ${isOwner ? sql`waiting_site_id` : sql`null`}, waiting_at = ${isOwner ? sql`waiting_at` : sql`null`}
    where allocation_id = ${allocation.id}`.execute(tx);
  return true;
}

/** How a series stands to a source; null where there is none yet. `isNoted`: one write a minute tells when the owner was heard. */
async function lockSeries(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
): Promise<{ isOwner: boolean; isSilent: boolean; isNoted: boolean } | null> {
  const { rows } = await sql<{ isOwner: boolean; isSilent: boolean; isNoted: boolean }>`
    select source_site_id = ${siteId} and coalesce(source_project_id, ${projectId}) = ${projectId} as is_owner,
      source_seen_at <= svc_now() - ${silence}::interval as is_silent,
      source_seen_at >= svc_now() - interval '1 minute' and source_project_id is not null as is_noted
    from protect_series where allocation_id = ${allocationId} for update`.execute(tx);
  return rows[0] ?? null;
}

/** How a source stands to the minutes of a generation: it owns them, another one holds them, or they are open to all. */
export type Standing = 'owned' | 'held' | 'open';

/** By generation; one without minutes is absent. Claims nothing. */
export async function readStandings(
  tx: Queryable,
  allocationIds: readonly number[],
  { projectId, siteId }: Source,
): Promise<Map<number, Standing>> {
  const { rows } = await sql<{ id: number; standing: Standing }>`
    select allocation_id as id, case
      when source_site_id = ${siteId} and coalesce(source_project_id, ${projectId}) = ${projectId} then 'owned'
      when source_seen_at <= svc_now() - ${silence}::interval then 'open' else 'held' end as standing
    from protect_series where allocation_id = any(${[...allocationIds]}::bigint[])`.execute(tx);
  return new Map(rows.map(({ id, standing }) => [id, standing]));
}

/** Notes minutes that were not stored. */
export async function noteSetAside(
  tx: Queryable,
  allocationId: number,
  { projectId, siteId }: Source,
  minutes: readonly { timestamp: string; reason: string }[],
): Promise<void> {
  await sql`insert into protect_set_aside (allocation_id, minute, project_id, source_site_id, reason)
    select ${allocationId}, minute, ${projectId}, ${siteId}, reason
    from jsonb_to_recordset(${JSON.stringify(minutes.map(({ timestamp, reason }) => ({ minute: timestamp, reason })))}::jsonb)
      as sent(minute timestamptz, reason text)
    on conflict (allocation_id, minute) do update set project_id = excluded.project_id,
      source_site_id = excluded.source_site_id, reason = excluded.reason, received_at = svc_now()`.execute(
    tx,
  );
}

/** Gives a refused source what it waits for from this owner; returns how many generations that were. */
export async function handOver(
  db: Queryable,
  to: Source,
  owner: { projectId: number | null; siteId: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    update protect_series set source_project_id = waiting_project_id, source_site_id = waiting_site_id,
      source_seen_at = svc_now(), taken_over_at = svc_now(), waiting_project_id = null, waiting_site_id = null,
      waiting_at = null
    where waiting_project_id = ${to.projectId} and waiting_site_id = ${to.siteId}
      and source_project_id is not distinct from ${owner.projectId}::bigint and source_site_id = ${owner.siteId}`.execute(
    db,
  );
  return Number(numAffectedRows ?? 0n);
}

/**
 * How a source stands to a generation, without claiming it: `owner`, `refused` while another source owns it and delivers,
 * which is noted for operators, or `free`.
 */
export async function readStanding(
  tx: Queryable,
  allocationId: number,
  source: Source,
): Promise<'owner' | 'refused' | 'free'> {
  const series = await lockSeries(tx, allocationId, source);
  if (series === null) return 'free';
  if (series.isOwner) return 'owner';
  if (series.isSilent) return 'free';
  await sql`update protect_series set waiting_project_id = ${source.projectId}, waiting_site_id = ${source.siteId},
      waiting_at = svc_now() where allocation_id = ${allocationId}`.execute(tx);
  return 'refused';
}
