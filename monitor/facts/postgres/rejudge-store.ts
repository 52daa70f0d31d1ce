/** Facts whose sensor turned out not to be, or to be, of the node that had the server. */
import { sql } from 'kysely';
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SiteDay } from '../control/engine-use-store.ts';

/** What is older has been delivered, and shows as it was. */
const hoursMax = 24;
/** Addresses of one statement: with a day of minutes each it is answered in seconds. */
const batchSize = 100;

/** Writes verdicts that changed, and marks their minutes for the roll-up; returns their days. */
export async function rejudgeAddresses(
  trx: Queryable,
  changed: readonly ChangedAddress[],
): Promise<SiteDay[]> {
  const days: SiteDay[] = [];
  for (let i = 0; i < changed.length; i += batchSize)
    days.push(...(await rejudge(trx, changed.slice(i, i + batchSize))));
  return days;
}

/** Each table of facts, and the local address of its rows. */
const tables = [
  { table: 'host_minutes', local: sql`f.address` },
  { table: 'application_facts', local: sql`f.local_address` },
  { table: 'late_peer_minutes', local: sql`f.local` },
  {
    table: 'endpoint_pairs',
    local: sql`(case f.direction when 4 then null when 2 then f.server else f.client end)`,
  },
];

/**
 * Rows of a capture, minute, address and segment have one verdict, so it is found once for each of those. Where a server was
 * is looked up once for each address and sensor: a day has 1,440 minutes and one or two places. Only rows whose verdict
 * changes are looked up again.
 */
async function rejudge(trx: Queryable, changed: readonly ChangedAddress[]): Promise<SiteDay[]> {
  const since = changed.map((one) => (Number.isFinite(one.since) ? one.since : 0));
  const covers = sql`p.began_at < d.minute + interval '1 minute' and p.ended_at > d.minute
    and (p.is_unique or p.segment = '' or d.segment = '' or p.segment in (d.segment, d.name))`;
  const part = (table: string, name: string) => sql.ref(`${table}_${name}`);
  const judged = tables.map(
    ({ table, local }) => sql`
    ${part(table, 'told')} as materialized (
      select distinct g.address, f.site_id, f.minute, f.capture_id, f.segment, f.is_foreign, c.sensor_id, c.name
      from given g cross join (select distinct site_id as id from captures) t
      join ${sql.table(table)} f on f.site_id = t.id and ${local} = g.address
        and f.minute >= greatest(g.since, svc_now() - make_interval(hours => ${hoursMax})) - interval '1 minute'
      join captures c on c.id = f.capture_id),
    ${part(table, 'places')} as materialized (
      select s.address, s.sensor_id, p.*
      from (select distinct address, sensor_id from ${part(table, 'told')}) s
      cross join lateral address_placements(s.sensor_id, s.address) p),
    ${part(table, 'changed')} as materialized (
      select d.address, d.site_id, d.minute, d.capture_id, d.segment, d.is_foreign
      from ${part(table, 'told')} d
      left join ${part(table, 'places')} p on p.address = d.address and p.sensor_id = d.sensor_id and ${covers}
      group by d.address, d.site_id, d.minute, d.capture_id, d.segment, d.is_foreign
      having d.is_foreign <> (count(p.address) > 0 and not coalesce(bool_or(p.speaks), false))),
    ${part(table, 'written')} as (
      update ${sql.table(table)} f set is_foreign = not v.is_foreign from ${part(table, 'changed')} v
      where f.site_id = v.site_id and ${local} = v.address and f.minute = v.minute and f.capture_id = v.capture_id
        and f.segment = v.segment and f.is_foreign = v.is_foreign
      returning f.site_id, f.minute)`,
  );
  const written = tables.map(({ table }) => sql`select site_id, minute from ${part(table, 'written')}`);
  const { rows } = await sql<SiteDay>`
    with given as (
      select address, to_timestamp(since) as since
      from unnest(${changed.map((one) => one.address)}::inet[], ${since}::float8[]) as g(address, since)),
    ${sql.join(judged)},
    marked as (
      insert into site_minute_marks (site_id, minute) ${sql.join(written, sql` union `)} returning site_id, minute)
    select distinct site_id as "siteId", (floor(extract(epoch from minute) / 86400) * 86400)::float8 as day from marked`.execute(
    trx,
  );
  return rows;
}
