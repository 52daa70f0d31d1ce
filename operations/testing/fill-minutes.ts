/** A long history of minutes, written at once: what months of deliveries would leave behind. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { sumMinutes } from './sum-minutes.ts';

/** Every minute of so many days, until the end of the present minute, of each address of these servers. */
export async function fillMinutes(
  db: Queryable,
  serverIds: readonly number[],
  { days, applications }: { days: number; applications: number },
): Promise<void> {
  const ofServers = sql`any(${[...serverIds]}::bigint[])`;
  await sql`insert into protect_series (allocation_id, tenant_id, server_id, address, source_site_id)
    select a.id, s.tenant_id, s.id, a.address, 1 from allocations a join servers s on s.id = a.server_id
    where s.id = ${ofServers} on conflict do nothing`.execute(db);
  await sql`insert into protect_minutes (allocation_id, minute, inbound_bytes, outbound_bytes, inbound_bps, outbound_bps,
      pps, expected_bps, expected_pps, ddos_bps, ddos_pps, coverage, applications)
    select allocation_id, at, n * 7500, n * 75, n * 1000.25, n * 10.125, n / 7.0, n * 990.5, n / 8.0, 0, 0, 0.99, names
    from protect_series, (
      select at, row_number() over (order by at) as n
      from generate_series(date_trunc('minute', svc_now()) - make_interval(days => ${days}),
        date_trunc('minute', svc_now()), '1 minute') at
    ) minutes, (
      select jsonb_agg(jsonb_build_object('name', 'host-' || i || '.example.com', 'transport', 'tcp', 'server_port', 443,
        'inbound_bytes', i * 1000, 'outbound_bytes', i * 10)) as names from generate_series(1, ${applications}::int) i
    ) applications
    where server_id = ${ofServers} on conflict do nothing`.execute(db);
  await sumMinutes(db);
  await sql`analyze protect_series, protect_minutes, protect_usage_tens, protect_usage_hours, protect_application_hours`.execute(
    db,
  );
}
