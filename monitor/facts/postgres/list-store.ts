/** The packed lists of applications that are shown: of all others they are never read. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as facts from '../contract/facts.ts';
import { inDirection } from './judge-store.ts';
import { type Coverage, daySeconds, hourSeconds, inSpans, inStarts, tenSeconds } from './span-store.ts';

/** By `keyText`: local addresses, and pairs with bytes, as `packed.ts` reads them. */
export interface KeptLists {
  locals: Map<string, Buffer>;
  pairs: Map<string, Buffer>;
}

/** Stored sums of a range under these names; minutes that are not judged yet are left out. */
export async function readKeptLists(
  db: Queryable,
  coverage: Coverage,
  direction: facts.Direction | null,
  wanted: Record<'locals' | 'pairs', readonly string[]>,
): Promise<KeptLists> {
  const part = (list: 'locals' | 'pairs', table: string, isIn: RawBuilder<unknown>) =>
    sql`select name, protocol, server_port, ${sql.ref(list)} as list from ${sql.table(table)}
      where site_id = ${coverage.siteId} and ${inDirection(direction)} and name = any(${[...wanted[list]]}::text[]) and ${isIn}`;
  const { names: all, namePairs: young } = coverage;
  return {
    locals: await readLists(db, [
      part('locals', 'name_day_locals', inStarts(all.days, daySeconds, 'day')),
      part('locals', 'name_hour_locals', inStarts(all.hours, hourSeconds, 'hour')),
      part('locals', 'name_tens', inStarts(all.tens, tenSeconds, 'start')),
      part('locals', 'name_minutes', inSpans(all.judged)),
    ]),
    pairs: await readLists(db, [
      part('pairs', 'name_pair_hours', inStarts(young.hours, hourSeconds, 'hour')),
      part('pairs', 'name_pair_tens', inStarts(young.tens, tenSeconds, 'start')),
      part('pairs', 'name_pair_minutes', inSpans(young.judged)),
    ]),
  };
}

async function readLists(db: Queryable, parts: readonly RawBuilder<unknown>[]): Promise<Map<string, Buffer>> {
  const { rows } = await sql<facts.ApplicationKey & { list: Buffer }>`
    select name, protocol, server_port as "serverPort", string_agg(list, ''::bytea) as list
    from (${sql.join(parts, sql` union all `)}) lists group by name, protocol, server_port`.execute(db);
  return new Map(rows.map((row) => [facts.keyText(row), row.list]));
}
