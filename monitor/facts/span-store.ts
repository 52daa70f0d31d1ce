/** Parts of a range that are read in different ways. */
import { type RawBuilder, sql } from 'kysely';
import type { SiteRange } from './facts.ts';

/** From the first second inclusive to the last exclusive. */
export interface Span {
  from: number;
  to: number;
}

/** A range as the hours that are rolled up and the spans around them that must be read from finer rows. */
export interface Coverage {
  siteId: number;
  /** Starts of hours. */
  hours: number[];
  spans: Span[];
}

export const hourSeconds = 3600;

/** Everything from finer rows. */
export function rawCoverage(range: SiteRange): Coverage {
  const { siteId, fromMinute: from, toMinute: to } = range;
  return { siteId, hours: [], spans: from < to ? [{ from, to }] : [] };
}

/** Splits a range by the hours that are rolled up; only whole hours of the range count. */
export function splitRange(range: SiteRange, rolledHours: ReadonlySet<number>): Coverage {
  const { siteId, fromMinute, toMinute } = range;
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
  return { siteId, hours, spans };
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
export function inHours(hours: readonly number[]): RawBuilder<unknown> {
  if (hours.length === 0) return sql`false`;
  return sql`hour = any(array(select to_timestamp(h) from unnest(${hours}::float8[]) h))
    and hour >= to_timestamp(${hours[0]!}) and hour <= to_timestamp(${hours.at(-1)!})`;
}
