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

/** Everything from finer rows. */
export function rawCoverage(range: SiteRange): Coverage {
  const { siteId, fromMinute: from, toMinute: to } = range;
  return { siteId, hours: [], spans: from < to ? [{ from, to }] : [] };
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
