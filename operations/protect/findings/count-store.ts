/** The counts of each address, stored in every transaction that changes what they count. */

import { sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import { countFindings, isOutdatedCount } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Evidence is kept for seven days (NET-8.R4). */
const keptFor = sql.lit(kept.scans);

/**
 * Counts the findings of these addresses again, without expired evidence, which is deleted; returns the number of its services. Call it after the last change of a transaction: the projections stay locked until it ends,
 * so of two transactions that change one address the later one counts what both have done.
 */
export async function storeCounts(tx: Queryable, allocationIds: readonly number[]): Promise<number> {
  if (allocationIds.length === 0) return 0;
  const ids = sql`any(${[...allocationIds]}::bigint[])`;
  await sql`select from finding_projections where allocation_id = ${ids} order by allocation_id for update`.execute(
    tx,
  );
  const expired = await sql`delete from finding_services
    where allocation_id = ${ids} and observed_at <= svc_now() - ${keptFor}::interval`.execute(tx);
  await sql`
    insert into finding_counts as held (allocation_id, valid_until, active, ignored, exploited, unable)
    ${countFindings(sql`p.allocation_id = ${ids}`)}
    on conflict (allocation_id) do update set valid_from = excluded.valid_from, valid_until = excluded.valid_until,
      active = excluded.active, ignored = excluded.ignored, exploited = excluded.exploited, unable = excluded.unable
    where (held.valid_until, held.active, held.ignored, held.exploited, held.unable)
        is distinct from (excluded.valid_until, excluded.active, excluded.ignored, excluded.exploited, excluded.unable)
      or held.valid_from > excluded.valid_from`.execute(tx);
  return Number(expired.numAffectedRows ?? 0n);
}

/** Addresses whose counts do not hold: evidence has expired, an ignore has ended, or the clock was put back. */
export async function listOutdated(db: Queryable, limit: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select c.allocation_id as id from finding_counts c where ${isOutdatedCount} limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

/** Addresses with expired evidence. */
export async function listExpired(tx: Queryable, limit: number): Promise<number[]> {
  const { rows } = await sql<{ id: number }>`
    select distinct allocation_id as id from (select allocation_id from finding_services
      where observed_at <= svc_now() - ${keptFor}::interval limit ${limit}) s`.execute(tx);
  return rows.map(({ id }) => id);
}
