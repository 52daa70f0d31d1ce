/** Makes the sums of traffic anew from the minutes: after a test has written minutes without the program. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

export async function sumMinutes(db: Queryable): Promise<void> {
  await sql`truncate protect_usage_tens, protect_usage_hours, protect_application_hours`.execute(db);
  for (const [table, seconds] of [
    ['protect_usage_tens', 600],
    ['protect_usage_hours', 3600],
  ] as const) {
    const bit = sql`1::bigint << (extract(epoch from minute)::bigint % ${sql.lit(seconds)} / 60)::int`;
    await sql`insert into ${sql.table(table)}
      select allocation_id, date_bin(make_interval(secs => ${sql.lit(seconds)}), minute, 'epoch'),
        coalesce(sum(inbound_bytes), 0), coalesce(sum(outbound_bytes), 0),
        coalesce(bit_or(${bit}) filter (where inbound_bps is not null), 0),
        coalesce(bit_or(${bit}) filter (where outbound_bps is not null), 0),
        coalesce(sum(round(pps * 60)::bigint), 0), coalesce(bit_or(${bit}) filter (where pps is not null), 0),
        sum(own_scan_inbound_bytes), sum(own_scan_outbound_bytes)
      from protect_minutes where inbound_bps is not null or outbound_bps is not null
      group by 1, 2 order by 2, 1`.execute(db);
  }
  await sql`insert into protect_application_hours
    select allocation_id, date_bin('1 hour', minute, 'epoch'), name, transport, server_port, sum(seen.inbound_bytes),
      sum(seen.outbound_bytes), max(minute) filter (where seen.outbound_bytes > 0)
    from protect_minutes, jsonb_to_recordset(applications) as seen(name text, transport text, server_port integer,
      inbound_bytes bigint, outbound_bytes bigint)
    where minute >= svc_now() - interval '2 days'
    group by 1, 2, 3, 4, 5 order by 2, 1`.execute(db);
}
