import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Stored names of these prefixes. */
export async function listNames(db: Queryable, prefixes: readonly string[]): Promise<Map<string, string>> {
  if (prefixes.length === 0) return new Map();
  const { rows } = await sql<{ prefix: string; manufacturer: string }>`
    select prefix, manufacturer from vendor_lookups
    where prefix = any(${[...prefixes]}) and manufacturer is not null`.execute(db);
  return new Map(rows.map((row) => [row.prefix, row.manufacturer]));
}

/** Prefixes that may be looked up now: without an answer, and not tried for twelve hours. */
export async function listDuePrefixes(db: Queryable, prefixes: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ prefix: string }>`
    select p.prefix from unnest(${[...prefixes]}::text[]) with ordinality as p(prefix, place)
    left join vendor_lookups l using (prefix)
    where l.prefix is null or (l.manufacturer is null and l.tried_at <= svc_now() - interval '12 hours')
    order by l.tried_at nulls first, p.place`.execute(db);
  return rows.map((row) => row.prefix);
}

/** Records a lookup before it is made, so that a lookup that crashes the process counts as failed. */
export async function noteAttempt(db: Queryable, prefix: string): Promise<void> {
  await sql`insert into vendor_lookups (prefix) values (${prefix})
    on conflict (prefix) do update set tried_at = svc_now()`.execute(db);
}

export async function writeName(db: Queryable, prefix: string, manufacturer: string): Promise<void> {
  await sql`update vendor_lookups set manufacturer = ${manufacturer} where prefix = ${prefix}`.execute(db);
}
