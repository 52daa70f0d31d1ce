/**
 * A range as its rolled-up hours and the spans around them that are read from finer rows.
 *
 * What is rolled up is asked in the very snapshot in which it is read, so a reader never meets an hour that is being made
 * anew: facts and their marks are committed together, and an hour with a mark counts as not rolled up.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { pairsKeptMs, type SiteRange } from './facts.ts';

/** From the first second inclusive to the last exclusive. */
export interface Span {
  from: number;
  to: number;
}

export interface Parts {
  /** Starts of hours. */
  hours: number[];
  spans: Span[];
}

export interface Coverage extends Parts {
  siteId: number;
  /** The part of it that is young enough for pairs (NET-2.2.7). */
  pairs: Parts;
}

export const hourSeconds = 3600;

/** Runs reads of one snapshot, told what of the range is rolled up; nothing, where `isFine` rows are asked for. */
export function readCovered<T>(
  db: Queryable,
  range: SiteRange,
  work: (trx: Queryable, coverage: Coverage) => Promise<T>,
): Promise<T> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      const { now, hours } = await findRolledHours(trx, range);
      const youngest = Math.ceil((now - pairsKeptMs / 1000) / 60) * 60;
      const young = { ...range, fromMinute: Math.max(range.fromMinute, youngest) };
      const rolled = new Set(hours);
      const { siteId } = range;
      return work(trx, { siteId, ...splitRange(range, rolled), pairs: splitRange(young, rolled) });
    });
}

/**
 * For the rest of the transaction: joins by hash, in enough memory. What the statements join is made by themselves, so the
 * planner knows nothing of its size, and a nested loop over a day's facts would take minutes.
 */
export async function preferHashing(trx: Queryable): Promise<void> {
  await sql`select set_config('enable_nestloop', 'off', true), set_config('work_mem', '64MB', true),
    set_config('jit', 'off', true)`.execute(trx);
}

async function findRolledHours(trx: Queryable, range: SiteRange): Promise<{ now: number; hours: number[] }> {
  await preferHashing(trx);
  const { rows } = await sql<{ now: number; hours: number[] }>`
    select extract(epoch from svc_now())::float8 as now, array(
      select extract(epoch from r.hour)::float8 from rolled_hours r
      where r.site_id = ${range.siteId} and not r.is_dirty and r.hour >= to_timestamp(${range.fromMinute})
        and r.hour + interval '1 hour' <= to_timestamp(${range.toMinute})
        and not exists (select 1 from site_minute_marks m
          where m.site_id = r.site_id and m.minute >= r.hour and m.minute < r.hour + interval '1 hour')) as hours`.execute(
    trx,
  );
  return rows[0]!;
}

/** Splits a range by the hours that are rolled up; only whole hours of the range count. */
function splitRange(range: SiteRange, rolledHours: ReadonlySet<number>): Parts {
  const { fromMinute, toMinute } = range;
  const hours: number[] = [];
  const spans: Span[] = [];
  let open = fromMinute;
  const first = Math.ceil(fromMinute / hourSeconds) * hourSeconds;
  for (let hour = first; hour + hourSeconds <= toMinute; hour += hourSeconds) {
    if (!rolledHours.has(hour)) continue;
    if (open < hour) spans.push({ from: open, to: hour });
    hours.push(hour);
    open = hour + hourSeconds;
  }
  if (open < toMinute) spans.push({ from: open, to: toMinute });
  return { hours, spans };
}

/** Hours as spans, adjoining ones as one. */
export function spansOf(hours: readonly number[]): Span[] {
  const spans: Span[] = [];
  for (const hour of hours) {
    const last = spans.at(-1);
    if (last?.to === hour) last.to += hourSeconds;
    else spans.push({ from: hour, to: hour + hourSeconds });
  }
  return spans;
}

/** Spans that cover both. */
export function uniteSpans(a: readonly Span[], b: readonly Span[]): Span[] {
  const united: Span[] = [];
  for (const span of [...a, ...b].toSorted((x, y) => x.from - y.from)) {
    const last = united.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else united.push({ ...span });
  }
  return united;
}

/** Condition that `minute` lies in one of the spans; constants, so that partitions are left out when it is planned. */
export function inSpans(spans: readonly Span[], column = 'minute'): RawBuilder<unknown> {
  if (spans.length === 0) return sql`false`;
  const minute = sql.ref(column);
  const each = spans.map(
    (span) => sql`(${minute} >= to_timestamp(${span.from}) and ${minute} < to_timestamp(${span.to}))`,
  );
  return sql`(${sql.join(each, sql` or `)})`;
}

/** Condition that `hour` is one of the rolled-up hours. */
export const inHours = (hours: readonly number[]): RawBuilder<unknown> => inSpans(spansOf(hours), 'hour');
