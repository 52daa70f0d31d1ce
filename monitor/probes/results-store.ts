/** Stores probe results, and their roll-ups in the same transaction. */
import { sql } from 'kysely';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

const daySeconds = 86_400;
/** Creates partitions before the transaction that writes, and remembers them. */
export function createPartitionMaker() {
  const known = new Set<number>();
  return {
    async ensureDays(db: Queryable, results: readonly ProbeResult[]): Promise<void> {
      for (const day of new Set(results.map(({ minute }) => Math.floor(minute / daySeconds) * daySeconds))) {
        if (known.has(day)) continue;
        for (const table of ['probe_results', 'probe_minutes'])
          await sql`select ensure_fact_partition(${table}, to_timestamp(${day}::float8), interval '1 day')`.execute(
            db,
          );
        known.add(day);
      }
    },
  };
}

/**
 * Only new rows reach the roll-ups, so a repeated result adds nothing. All transactions lock the roll-ups' rows in one
 * order, so that two sensors of a site can not deadlock.
 */
export async function insertResults(
  trx: Queryable,
  { siteId, sensorId }: { siteId: number; sensorId: number },
  results: readonly ProbeResult[],
): Promise<void> {
  if (results.length === 0) return;
  const column = <K>(pick: (one: ProbeResult) => K) => results.map(pick);
  await sql`
    with fresh as (
      insert into probe_results as r (minute, probe_id, sensor_id, first_sent_ms, sent, lost, rtt_min_us, rtt_median_us,
        rtt_max_us, failure)
      select to_timestamp(told.minute), told.probe, ${sensorId}, told.first_sent, told.sent, told.lost, told.rtt_min,
        told.rtt_median, told.rtt_max, told.failure
      from unnest(${column((one) => one.minute)}::float8[], ${column((one) => one.probe)}::bigint[],
        ${column((one) => one.firstSentMs)}::int[], ${column((one) => one.sent)}::int[],
        ${column((one) => one.lost)}::int[], ${column((one) => one.rtt?.minUs ?? null)}::int[],
        ${column((one) => one.rtt?.medianUs ?? null)}::int[], ${column((one) => one.rtt?.maxUs ?? null)}::int[],
        ${column((one) => one.failure)}::text[])
        as told (minute, probe, first_sent, sent, lost, rtt_min, rtt_median, rtt_max, failure)
      join probes p on p.id = told.probe and p.site_id = ${siteId}
      order by told.probe, told.minute
      on conflict do nothing returning *
    ), minutes as (
      insert into probe_minutes as m (minute, probe_id, sent, lost, rtt_min_us, rtt_median_sum_us, rtt_medians, rtt_max_us,
        failure)
      select minute, probe_id, sum(sent), sum(lost), min(rtt_min_us), coalesce(sum(rtt_median_us), 0),
        count(rtt_median_us), max(rtt_max_us), max(failure)
      from fresh group by probe_id, minute order by probe_id, minute
      on conflict (probe_id, minute) do update set
        sent = m.sent + excluded.sent, lost = m.lost + excluded.lost,
        rtt_min_us = least(m.rtt_min_us, excluded.rtt_min_us), rtt_max_us = greatest(m.rtt_max_us, excluded.rtt_max_us),
        rtt_median_sum_us = m.rtt_median_sum_us + excluded.rtt_median_sum_us,
        rtt_medians = m.rtt_medians + excluded.rtt_medians, failure = coalesce(excluded.failure, m.failure)
    )
    insert into probe_hours as h (hour, probe_id, reported, answered, sent, lost, rtt_min_us, rtt_median_sum_us, rtt_medians,
      rtt_max_us)
    select date_trunc('hour', minute, 'UTC'), probe_id, bit_or(1::bigint << extract(minute from minute at time zone 'UTC')::int),
      bit_or(case when lost < sent then 1::bigint << extract(minute from minute at time zone 'UTC')::int else 0 end),
      sum(sent), sum(lost), min(rtt_min_us), coalesce(sum(rtt_median_us), 0), count(rtt_median_us), max(rtt_max_us)
    from fresh group by probe_id, 1 order by probe_id, 1
    on conflict (probe_id, hour) do update set
      reported = h.reported | excluded.reported, answered = h.answered | excluded.answered,
      sent = h.sent + excluded.sent, lost = h.lost + excluded.lost,
      rtt_min_us = least(h.rtt_min_us, excluded.rtt_min_us), rtt_max_us = greatest(h.rtt_max_us, excluded.rtt_max_us),
      rtt_median_sum_us = h.rtt_median_sum_us + excluded.rtt_median_sum_us,
      rtt_medians = h.rtt_medians + excluded.rtt_medians`.execute(trx);
}
