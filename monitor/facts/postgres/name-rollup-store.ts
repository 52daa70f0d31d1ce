/** Hours and days by name, without addresses. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { nameColumns, sumNames, totalOf } from './name-store.ts';

/** Sums hours by name and address up to a unit of hours by name, and its addresses. */
export async function sumHoursByName(
  trx: Queryable,
  unit: 'hour' | 'day',
  start: RawBuilder<unknown>,
  siteId: number,
  hours: RawBuilder<unknown>,
): Promise<void> {
  const site = sql`${siteId}::bigint`;
  const at = sql.ref(unit);
  for (const table of [`name_${unit}s`, `name_${unit}_locals`])
    await sql`delete from ${sql.table(table)} where site_id = ${siteId} and ${at} = ${start}`.execute(trx);
  await sql`
    with by_local as (
      select direction, name, protocol, server_port, local, sum(inbound_bytes) as inbound_bytes,
        sum(outbound_bytes) as outbound_bytes, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
        min(owner) as owner, min(seen) as seen, max(last_sent_at) as last_sent_at
      from application_hours where site_id = ${siteId} and ${hours}
      group by direction, name, protocol, server_port, local),
    sums as materialized (${sumNames(sql`by_local`, sql`direction`)}),
    locals as (
      insert into ${sql.table(`name_${unit}_locals`)} (${at}, site_id, direction, name, protocol, server_port, locals)
      select ${start}, ${site}, direction, name, protocol, server_port, locals from sums)
    insert into ${sql.table(`name_${unit}s`)} (${at}, site_id, ${nameColumns})
    select ${start}, ${site}, ${nameColumns} from sums
    union all select ${start}, ${site}, ${nameColumns} from (${totalOf(sql`sums`, sql`direction`)}) totals`.execute(
    trx,
  );
}
