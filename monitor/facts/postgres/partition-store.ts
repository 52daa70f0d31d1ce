/** Partitions of the fact tables. */

import { sql } from 'kysely';
import { kept } from '#contracts/retention.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

const day = 86_400;
const hour = 3600;

/** Tables whose rows come with uploads, and the seconds that a partition of each spans. */
const uploaded = [
  ['capture_minutes', day],
  ['host_minutes', day],
  ['application_facts', day],
  ['endpoint_pairs', hour],
  ['late_peer_minutes', day],
] as const;

/** What is made of a minute's facts and of an hour's; those of pairs, and usage of ten minutes, only while there are pairs. */
const rolledUp = [
  ['minute_owners', day],
  ['name_minutes', day],
  ['name_tens', day],
  ['name_pair_minutes', hour],
  ['name_pair_tens', hour],
  ['address_tens', day],
  ['usage_tens', hour],
  ['pair_tens', hour],
  ['address_hours', 7 * day],
  ['application_hours', day],
  ['name_hours', day],
  ['peer_network_hours', day],
  ['pair_hours', hour],
  ['pair_name_hours', hour],
  ['name_pair_hours', hour],
  ['name_hour_locals', day],
  ['name_days', 28 * day],
  ['name_day_locals', 28 * day],
] as const;
const ofPairs: ReadonlySet<string> = new Set(
  rolledUp.map(([table]) => table).filter((table) => table === 'usage_tens' || table.includes('pair')),
);

export type PartitionMaker = ReturnType<typeof createPartitionMaker>;

export function createPartitionMaker() {
  const known = new Set<string>();
  async function ensure(db: Queryable, table: string, minute: number, span: number): Promise<void> {
    const start = Math.floor(minute / span) * span;
    const key = `${table} ${start}`;
    if (known.has(key)) return;
    // Pairs that expired already are not stored, so they need no place.
    const isPairs = span === hour;
    await sql`select ensure_fact_partition(${table}, to_timestamp(${start}), make_interval(secs => ${span}))
      where not ${isPairs}::boolean or to_timestamp(${start + span}) > svc_now() - ${sql.lit(kept.pairs)}::interval`.execute(
      db,
    );
    // An old entry may have been dropped by retention; forgetting it costs one look.
    if (known.size > 256) known.clear();
    known.add(key);
  }
  return {
    /** Makes what the roll-up of an hour, of its minutes and of its day needs. */
    async ensureRollUps(db: Queryable, start: number, hasPairs: boolean) {
      for (const [table, span] of rolledUp) {
        if (hasPairs || !ofPairs.has(table)) await ensure(db, table, start, span);
      }
    },
    /** Makes what these minutes need, once each, so that a steady stream asks once an hour. */
    async ensureMinutes(db: Queryable, minutes: readonly number[]) {
      const hours = new Set(minutes.map((minute) => Math.floor(minute / hour) * hour));
      for (const start of hours) for (const [table, span] of uploaded) await ensure(db, table, start, span);
    },
  };
}
