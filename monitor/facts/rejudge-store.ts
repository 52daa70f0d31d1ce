/** Facts whose sensor turned out not to be, or to be, of the node that had the server. */
import { sql } from 'kysely';
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** What is older has been delivered, and shows as it was. */
const hoursMax = 24;
/** Addresses of one statement. */
const batchSize = 500;

/** Writes verdicts that changed, and marks their minutes for the roll-up. */
export async function rejudgeAddresses(trx: Queryable, changed: readonly ChangedAddress[]): Promise<void> {
  for (let i = 0; i < changed.length; i += batchSize) await rejudge(trx, changed.slice(i, i + batchSize));
}

async function rejudge(trx: Queryable, changed: readonly ChangedAddress[]): Promise<void> {
  const since = changed.map((one) => (Number.isFinite(one.since) ? one.since : 0));
  // Rows of a capture, minute, address and segment have one verdict, so it is asked once for each.
  const covers = sql`p.began_at < d.minute + interval '1 minute' and p.ended_at > d.minute
              and (p.is_unique or p.segment = '' or d.segment = '' or p.segment in (d.segment, d.name))`;
  const update = (table: string, local: string) => sql`
      update ${sql.table(table)} f set is_foreign = v.is_foreign
      from (
        select d.*, exists (select 1 from address_placements(d.sensor_id, d.address) p
            where ${covers})
          and not exists (select 1 from address_placements(d.sensor_id, d.address) p
            where ${covers} and p.speaks) as is_foreign
        from (
          select distinct g.address, f.site_id, f.minute, f.capture_id, f.segment, c.sensor_id, c.name
          from given g cross join sites t
          join ${sql.table(table)} f on f.site_id = t.id and ${sql.raw(local)} = g.address
            and f.minute >= greatest(g.since, svc_now() - make_interval(hours => ${hoursMax})) - interval '1 minute'
          join captures c on c.id = f.capture_id) d) v
      where f.site_id = v.site_id and ${sql.raw(local)} = v.address and f.minute = v.minute and f.capture_id = v.capture_id
        and f.segment = v.segment
        and f.is_foreign <> v.is_foreign
      returning f.site_id, f.minute`;
  await sql`
    with given as (
      select address, to_timestamp(since) as since
      from unnest(${changed.map((one) => one.address)}::inet[], ${since}::float8[]) as g(address, since)),
    hosts as (${update('host_minutes', 'f.address')}),
    used as (${update('application_facts', 'f.local_address')}),
    pairs as (${update('endpoint_pairs', '(case f.direction when 4 then null when 2 then f.server else f.client end)')})
    insert into site_minute_marks (site_id, minute)
    select site_id, minute from hosts union select site_id, minute from used union select site_id, minute from pairs`.execute(
    trx,
  );
}
