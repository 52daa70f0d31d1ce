/** Availability over time. Ranges of more than a day are read from hours and begin on a full hour. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

const dayMs = 86_400_000;
const hourMs = 3_600_000;

export interface Availability {
  /** Null: the site, which is up in a minute when any of its probes is up. */
  probeId: number | null;
  minutesUp: number;
  /** Measured minutes; the others are unknown. */
  minutesKnown: number;
  sent: number;
  lost: number;
  /** Mean of the minutes' medians, microseconds; null without answers. */
  rttUs: number | null;
}

export interface HistoryStep extends Omit<Availability, 'probeId'> {
  startMs: number;
  rttMinUs: number | null;
  rttMaxUs: number | null;
}

interface Range {
  fromMs: number;
  toMs: number;
}

/** True for a range of more than a day, which is read from hours, the first of them complete. */
function readsHours({ fromMs, toMs }: Range): boolean {
  return toMs - fromMs > dayMs;
}

export async function readAvailability(
  db: Queryable,
  range: Range & { siteId: number },
): Promise<Availability[]> {
  const { rows } = readsHours(range)
    ? await sql<Availability>`
        with hours as (
          select h.* from probe_hours h join probes p on p.id = h.probe_id
          where p.site_id = ${range.siteId} and p.removed_at is null
            and h.hour >= to_timestamp(${Math.floor(range.fromMs / hourMs) * 3600}::float8)
            and h.hour < to_timestamp(${range.toMs / 1000}::float8)
        ), site_hours as (
          select bit_or(reported) as reported, bit_or(answered) as answered, sum(sent) as sent, sum(lost) as lost,
            sum(rtt_median_sum_us) as rtt, sum(rtt_medians) as medians from hours group by hour
        )
        select probe_id, sum(bit_count(answered::bit(64)))::float8 as minutes_up,
          sum(bit_count(reported::bit(64)))::float8 as minutes_known, sum(sent)::float8 as sent, sum(lost)::float8 as lost,
          (sum(rtt_median_sum_us) / nullif(sum(rtt_medians), 0))::float8 as rtt_us
        from hours group by probe_id
        union all
        select null, sum(bit_count(answered::bit(64)))::float8, sum(bit_count(reported::bit(64)))::float8,
          sum(sent)::float8, sum(lost)::float8, (sum(rtt) / nullif(sum(medians), 0))::float8
        from site_hours having count(*) > 0`.execute(db)
    : await sql<Availability>`
        with minutes as (
          select m.* from probe_minutes m join probes p on p.id = m.probe_id
          where p.site_id = ${range.siteId} and p.removed_at is null
            and m.minute >= to_timestamp(${range.fromMs / 1000}::float8)
            and m.minute < to_timestamp(${range.toMs / 1000}::float8)
        ), site_minutes as (
          select bool_or(lost < sent) as is_up, sum(sent) as sent, sum(lost) as lost, sum(rtt_median_sum_us) as rtt,
            sum(rtt_medians) as medians from minutes group by minute
        )
        select probe_id, count(*) filter (where lost < sent)::float8 as minutes_up, count(*)::float8 as minutes_known,
          sum(sent)::float8 as sent, sum(lost)::float8 as lost,
          (sum(rtt_median_sum_us) / nullif(sum(rtt_medians), 0))::float8 as rtt_us
        from minutes group by probe_id
        union all
        select null, count(*) filter (where is_up)::float8, count(*)::float8, sum(sent)::float8, sum(lost)::float8,
          (sum(rtt) / nullif(sum(medians), 0))::float8
        from site_minutes having count(*) > 0`.execute(db);
  return rows;
}

export async function readHistory(
  db: Queryable,
  range: Range & { probeId: number; stepSeconds: number },
): Promise<HistoryStep[]> {
  const { probeId, stepSeconds } = range;
  const isHourly = readsHours(range) && stepSeconds % 3600 === 0;
  const step = sql`(floor(extract(epoch from ${sql.ref(isHourly ? 'hour' : 'minute')}) / ${stepSeconds}::float8) * ${stepSeconds * 1000})::float8`;
  const measures = sql`sum(sent)::float8 as sent, sum(lost)::float8 as lost, min(rtt_min_us) as rtt_min_us,
    max(rtt_max_us) as rtt_max_us, (sum(rtt_median_sum_us) / nullif(sum(rtt_medians), 0))::float8 as rtt_us`;
  const until = sql`to_timestamp(${range.toMs / 1000}::float8)`;
  const { rows } = isHourly
    ? await sql<HistoryStep>`
        select ${step} as start_ms, sum(bit_count(answered::bit(64)))::float8 as minutes_up,
          sum(bit_count(reported::bit(64)))::float8 as minutes_known, ${measures}
        from probe_hours where probe_id = ${probeId} and hour < ${until}
          and hour >= to_timestamp(${Math.floor(range.fromMs / hourMs) * 3600}::float8)
        group by 1 order by 1`.execute(db)
    : await sql<HistoryStep>`
        select ${step} as start_ms, count(*) filter (where lost < sent)::float8 as minutes_up,
          count(*)::float8 as minutes_known, ${measures}
        from probe_minutes where probe_id = ${probeId} and minute < ${until}
          and minute >= to_timestamp(${range.fromMs / 1000}::float8)
        group by 1 order by 1`.execute(db);
  return rows;
}

export interface ProbeMinutes {
  probeId: number;
  siteId: number;
  name: string;
  /** Time since the end of the newest minute; null without a recent one. */
  ageSeconds: number | null;
  /** Newest first, of the last half hour; unmeasured minutes are left out. */
  minutes: { isUp: boolean; failure: string | null }[];
}

/** The newest minutes of every active probe, of all sites in one query. */
export async function listNewestMinutes(db: Queryable, count: number): Promise<ProbeMinutes[]> {
  const { rows } = await sql<ProbeMinutes>`
    select p.id as probe_id, p.site_id, p.name,
      extract(epoch from svc_now() - max(m.minute) - interval '1 minute')::float8 as age_seconds,
      coalesce(json_agg(json_build_object('isUp', m.lost < m.sent, 'failure', m.failure) order by m.minute desc)
        filter (where m.minute is not null), '[]') as minutes
    from probes p
    left join lateral (
      select minute, sent, lost, failure from probe_minutes n
      where n.probe_id = p.id and n.minute > svc_now() - interval '30 minutes' and n.minute <= svc_now() - interval '1 minute'
      order by minute desc limit ${count}
    ) m on true
    where p.removed_at is null and p.is_enabled group by p.id`.execute(db);
  return rows;
}
