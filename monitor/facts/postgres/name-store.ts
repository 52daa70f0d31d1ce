/**
 * What names exchanged, and the packed lists beside them. The same expressions make what is kept of a judged minute and
 * what is read of one that is not judged yet.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { noAddress } from './judge-store.ts';

/** What a name exchanged, as every table of names has it after its start and site; those of minutes and tens have `locals` as well. */
export const nameColumns = sql`direction, name, protocol, server_port, inbound_bytes, outbound_bytes, evidence, is_attributed,
  owner, seen, last_sent_at`;

const packedLocals = sql`coalesce(string_agg(inet_send(local), ''::bytea) filter (where local <> ${noAddress}), ''::bytea)`;

/**
 * Rows by name of rows by name and local address, under these further columns. `by_local` holds each name and address
 * once, with bytes that are null where only the name is known.
 */
export function sumNames(byLocal: RawBuilder<unknown>, further: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select ${further}, name, protocol, server_port, sum(inbound_bytes) as inbound_bytes,
      sum(outbound_bytes) as outbound_bytes, max(evidence) as evidence, bool_or(is_attributed) as is_attributed,
      min(owner) as owner, min(seen) as seen, max(last_sent_at) as last_sent_at, ${packedLocals} as locals
    from ${byLocal} group by ${further}, name, protocol, server_port`;
}

/** `name_sums`: of `judged`, by minute and name. An address may be in `locals` repeatedly; readers count it once. */
export const judgedNames = sql`name_sums as materialized (
      select minute, direction, name, protocol, server_port, sum(inbound_bytes) filter (where owns) as inbound_bytes,
        sum(outbound_bytes) filter (where owns) as outbound_bytes, max(evidence) as evidence,
        bool_or(is_attributed) as is_attributed, min(vantage) filter (where owns) as owner, min(vantage) as seen,
        max(last_sent_at) as last_sent_at, ${packedLocals} as locals
      from judged group by minute, direction, name, protocol, server_port)`;

/** The bytes of all names, as a row without one. */
export const totalOf = (sums: RawBuilder<unknown>, further: RawBuilder<unknown>) => sql`
  select ${further}, null::text as name, 0 as protocol, null::int as server_port, sum(inbound_bytes) as inbound_bytes,
    sum(outbound_bytes) as outbound_bytes, 0 as evidence, false as is_attributed, null::smallint as owner, 1 as seen,
    null::timestamptz as last_sent_at
  from ${sums} where owner is not null group by ${further}`;

const packedPair = sql`inet_send(client) || inet_send(server) || float8send(coalesce(bytes::float8, 'NaN'))`;

/** Packed pairs by name. */
export function packPairs(pairs: RawBuilder<unknown>, further: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`select ${further}, name, protocol, server_port, string_agg(${packedPair}, ''::bytea) as pairs
    from ${pairs} group by ${further}, name, protocol, server_port`;
}

/** `pair_sums`: of `judged_pairs`, by minute and name; a pair may stand there more than once, and its bytes add. */
export const judgedPairSums = sql`each_pair as (
      select minute, direction, name, protocol, server_port, client, server,
        case when owns then client_bytes + server_bytes end as bytes
      from judged_pairs),
    pair_sums as (${packPairs(sql`each_pair`, sql`minute, direction`)})`;

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
    union all select ${start}, ${site}, ${nameColumns}
    from (${totalOf(sql`sums`, sql`direction`)}) totals`.execute(trx);
}
