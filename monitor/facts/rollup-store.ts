/** Marks of what changed, and what is made of finer rows because of them. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

const counterMax = sql.lit(Number.MAX_SAFE_INTEGER);

export async function hasMarks(db: Queryable): Promise<boolean> {
  return (await sql`select 1 from site_minute_marks limit 1`.execute(db)).rows.length > 0;
}

/** Lets one roll-up run at a time, until the transaction ends. */
export async function lockRollUp(trx: Queryable): Promise<void> {
  await sql`select pg_advisory_xact_lock(7318102)`.execute(trx);
}

/** Takes up to `limit` committed marks away. */
export async function takeMarks(
  trx: Queryable,
  limit: number,
): Promise<{ siteId: number; minute: number }[]> {
  const { rows } = await sql<{ siteId: number; minute: number }>`
    delete from site_minute_marks where id in (select id from site_minute_marks order by id limit ${limit})
    returning site_id as "siteId", extract(epoch from minute)::float8 as minute`.execute(trx);
  return rows;
}

/** A minute in which captures listened and saw no address is a row of zeros: observed, and quiet. */
export async function recomputeSiteMinutes(
  trx: Queryable,
  marks: readonly { siteId: number; minute: number }[],
): Promise<void> {
  await sql`
    insert into site_minutes (site_id, minute, rx_bytes, tx_bytes, packets, addresses)
    select marked.site_id, marked.minute, least(coalesce(sum(seen.rx_bytes), 0), ${counterMax}),
      least(coalesce(sum(seen.tx_bytes), 0), ${counterMax}), least(coalesce(sum(seen.packets), 0), ${counterMax}), count(seen.address)
    from (select distinct site_id, to_timestamp(minute) as minute
      from unnest(${marks.map((mark) => mark.siteId)}::bigint[], ${marks.map((mark) => mark.minute)}::float8[])
        as given (site_id, minute)) marked
    left join lateral strongest_host_minutes(marked.site_id, marked.minute, marked.minute + interval '1 minute')
      seen on true
    group by marked.site_id, marked.minute
    on conflict (site_id, minute) do update set rx_bytes = excluded.rx_bytes, tx_bytes = excluded.tx_bytes,
      packets = excluded.packets, addresses = excluded.addresses`.execute(trx);
}
