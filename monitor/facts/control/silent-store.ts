/** When captures may not say that an address was silent. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type * as facts from '../contract/facts.ts';
import { byRange, capturesOf } from './gap-store.ts';

interface SilentSpan {
  n: number;
  captureId: number;
  /** Seconds; infinite where the place has no end. */
  fromSecond: number;
  toSecond: number;
}

/** When captures may not say that an address was silent: a server of another node had it, or one of its own may have left. */
export async function findPlaces(
  db: Queryable,
  ranges: readonly facts.AddressRange[],
  captures: readonly (readonly number[])[],
  certainUntil: string,
): Promise<Map<number, Omit<SilentSpan, 'n'>[]>> {
  const { rows } = await sql<SilentSpan>`
    select k.n, k.capture_id as "captureId", extract(epoch from p.ended_at)::float8 as "toSecond",
      extract(epoch from case when p.speaks then greatest(p.began_at, ${certainUntil}::timestamptz)
        else p.began_at end)::float8 as "fromSecond"
    from ${capturesOf(ranges, captures)} join captures c on c.id = k.capture_id
    cross join lateral address_placements(c.sensor_id, k.address) p
    where (p.is_unique or p.segment = '' or k.segment in ('', p.segment)) and (not p.speaks or p.is_open)`.execute(
    db,
  );
  return byRange(rows);
}
