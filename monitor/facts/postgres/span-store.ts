/**
 * A range as its rolled-up hours and the spans around them that are read from finer rows.
 *
 * What is rolled up is asked in the very snapshot in which it is read, so a reader never meets an hour that is being made
 * anew: facts and their marks are committed together, and an hour with a mark counts as not rolled up.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { pairsKeptMs, type SiteRange } from '../contract/facts.ts';

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

/** Minutes outside of hours, by whether their facts have been judged. */
export interface MinuteParts {
  judged: Span[];
  unjudged: Span[];
}

/** A range as the tables by address hold it. */
export interface AddressParts extends Parts {
  /** Starts of ten minutes. */
  tens: number[];
}

/** A range as the tables of usage and of connections hold it. */
export interface UsageParts extends Parts, MinuteParts {
  /** Starts of ten minutes, of hours that are not summed. */
  tens: number[];
}

/** A range as the tables by name hold it. */
export interface NameParts extends MinuteParts {
  /** Starts of days, of hours, of ten minutes. */
  days: number[];
  hours: number[];
  tens: number[];
}

export interface Coverage extends Parts, MinuteParts {
  siteId: number;
  /** Whether all of it is young enough for pairs (NET-2.2.7). */
  isYoung: boolean;
  /** The part of it that is. */
  pairs: Parts & MinuteParts;
  /** Both once more, of hours that hold what queries over any dimensions need. */
  detailed: { all: Parts & MinuteParts; pairs: Parts & MinuteParts };
  /** Takes ten minutes that are kept as such out of the judged minutes. */
  withUsageTens(parts: Parts & MinuteParts): UsageParts;
  names: NameParts;
  namePairs: NameParts;
  /** The tables by address, of parts that fit into steps of so many seconds; hours don't tell which capture counted. */
  addressesUpTo(stepSeconds: number, needsCapture: boolean): AddressParts;
  /** As `names`, of parts that fit into steps of so many seconds. */
  namesUpTo(stepSeconds: number): NameParts;
  /** The same of the part that is young enough for pairs. */
  youngNamesUpTo(stepSeconds: number): NameParts;
}

export const hourSeconds = 3600;
export const tenSeconds = 600;
export const daySeconds = 86_400;

/** Runs reads of one snapshot, told what of the range is rolled up. */
export function readCovered<T>(
  db: Queryable,
  range: SiteRange,
  work: (trx: Queryable, coverage: Coverage) => Promise<T>,
): Promise<T> {
  return db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => work(trx, coverageOf(range, await findRolled(trx, range))));
}

function coverageOf(range: SiteRange, rolled: Rolled): Coverage {
  const youngest = Math.ceil((rolled.now - pairsKeptMs / 1000) / 60) * 60;
  const young = { ...range, fromMinute: Math.max(range.fromMinute, youngest) };
  const all = [{ from: range.fromMinute, to: range.toMinute }];
  const youngAll = [{ from: young.fromMinute, to: young.toMinute }];
  const sets = {
    hours: new Set(rolled.hours),
    tens: new Set(rolled.tens),
    unjudged: new Set(rolled.unjudged),
  };
  // Made when they are asked for: most reads need neither.
  const detailed = () => without(sets.hours, rolled.hoursWithoutDetail);
  const addressTens = () => without(sets.tens, rolled.tensWithoutAddresses);
  const withUsageTens = (parts: Parts & MinuteParts): UsageParts => {
    const { starts, spans } = splitSpans(parts.judged, new Set(rolled.tensWithUsage), tenSeconds);
    return { ...parts, tens: starts, judged: spans, spans: uniteSpans(spans, parts.unjudged) };
  };
  const byHours = (spans: readonly Span[], rolledHours: ReadonlySet<number> = sets.hours) => {
    const { starts, spans: rest } = splitSpans(spans, rolledHours, hourSeconds);
    return { hours: starts, spans: rest, ...splitMinutes(rest, sets.unjudged) };
  };
  const fitting = (stepSeconds: number) => (unit: number, starts: ReadonlySet<number>) =>
    stepSeconds % unit === 0 ? starts : new Set<number>();
  const addressesUpTo = (stepSeconds: number, needsCapture: boolean): AddressParts => {
    const fits = fitting(stepSeconds);
    const hours = splitSpans(all, needsCapture ? new Set() : fits(hourSeconds, sets.hours), hourSeconds);
    const tens = splitSpans(hours.spans, fits(tenSeconds, addressTens()), tenSeconds);
    return { hours: hours.starts, tens: tens.starts, spans: tens.spans };
  };
  const names = (spans: readonly Span[], stepSeconds: number): NameParts => {
    const fits = fitting(stepSeconds);
    const days = splitSpans(spans, fits(daySeconds, new Set(rolled.days)), daySeconds);
    const hours = splitSpans(days.spans, fits(hourSeconds, sets.hours), hourSeconds);
    const tens = splitSpans(hours.spans, fits(tenSeconds, sets.tens), tenSeconds);
    const minutes = splitMinutes(tens.spans, sets.unjudged);
    return { days: days.starts, hours: hours.starts, tens: tens.starts, ...minutes };
  };
  return {
    siteId: range.siteId,
    ...byHours(all),
    isYoung: range.fromMinute >= youngest,
    pairs: byHours(youngAll),
    get detailed() {
      return { all: byHours(all, detailed()), pairs: byHours(youngAll, detailed()) };
    },
    withUsageTens,
    names: names(all, daySeconds),
    // Pairs of a day are kept by the hour.
    namePairs: names(youngAll, hourSeconds),
    addressesUpTo,
    namesUpTo: (stepSeconds) => names(all, stepSeconds),
    youngNamesUpTo: (stepSeconds) => names(youngAll, stepSeconds),
  };
}

/**
 * For the rest of the transaction: joins and groups by hash, in enough memory. What the statements join is made by
 * themselves, so the planner knows nothing of its size, and a nested loop over a day's facts, or a merge by the minute
 * alone, would take minutes.
 */
export async function preferHashing(trx: Queryable): Promise<void> {
  await sql`select set_config('enable_nestloop', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('work_mem', '64MB', true), set_config('hash_mem_multiplier', '4', true), set_config('jit', 'off', true)`.execute(
    trx,
  );
}

/**
 * For the rest of the transaction: groups by hash, also where the planner expects so many groups that it would sort millions of rows on
 * disk; an expression over a step has no statistics. For the same reason it would sum what workers read in one process: what that costs is
 * said to be less, so that each worker sums its own rows and hands over sums; and what it costs to start them is said to be more, because a
 * statement of a tenth of a second is not faster with them.
 */
export async function groupByHash(trx: Queryable): Promise<void> {
  await sql`select set_config('enable_sort', 'off', true), set_config('parallel_tuple_cost', '0.02', true),
    set_config('parallel_setup_cost', '8000', true)`.execute(trx);
}

/** For the rest of the transaction: PostgreSQL stops a statement that takes longer. */
export async function limitStatements(trx: Queryable, ms: number): Promise<void> {
  await sql`select set_config('statement_timeout', ${String(ms)}, true)`.execute(trx);
}

interface Rolled {
  now: number;
  /** Starts of whole units of the range that are kept as such. */
  days: number[];
  hours: number[];
  tens: number[];
  /** Of these, hours that were rolled up before they had detail (migration 0505), and tens before they had addresses (0510). */
  hoursWithoutDetail: number[];
  tensWithoutAddresses: number[];
  /** Starts of ten minutes of which usage is kept. */
  tensWithUsage: number[];
  /** Starts of minutes that are read from the facts. */
  unjudged: number[];
}

async function findRolled(trx: Queryable, range: SiteRange): Promise<Rolled> {
  await preferHashing(trx);
  const { siteId, fromMinute, toMinute } = range;
  const clean = (table: string, column: string, length: string, only = sql`true`) => sql`array(
    select extract(epoch from ${sql.ref(`r.${column}`)})::float8 from ${sql.table(table)} r
    where r.site_id = ${siteId} and not r.is_dirty and ${only} and ${sql.ref(`r.${column}`)} >= to_timestamp(${fromMinute})
      and ${sql.ref(`r.${column}`)} + ${sql.lit(length)}::interval <= to_timestamp(${toMinute})
      and not exists (select 1 from site_minute_marks m where m.site_id = r.site_id
        and m.minute >= ${sql.ref(`r.${column}`)} and m.minute < ${sql.ref(`r.${column}`)} + ${sql.lit(length)}::interval))`;
  const inRange = sql`site_id = ${siteId} and minute >= to_timestamp(${fromMinute}) and minute < to_timestamp(${toMinute})`;
  const { rows } = await sql<Rolled>`
    select extract(epoch from svc_now())::float8 as now, ${clean('rolled_days', 'day', '1 day')} as days,
      ${clean('rolled_hours', 'hour', '1 hour')} as hours, ${clean('rolled_tens', 'start', '10 minutes')} as tens,
      ${clean('rolled_tens', 'start', '10 minutes', sql`r.has_usage`)} as tens_with_usage,
      array(select extract(epoch from hour)::float8 from rolled_hours where site_id = ${siteId} and not has_detail
        and hour >= to_timestamp(${fromMinute}) and hour < to_timestamp(${toMinute})) as hours_without_detail,
      array(select extract(epoch from start)::float8 from rolled_tens where site_id = ${siteId} and not has_addresses
        and start >= to_timestamp(${fromMinute}) and start < to_timestamp(${toMinute})) as tens_without_addresses, array(
        select extract(epoch from minute)::float8 from site_minute_marks where ${inRange}
        union select extract(epoch from minute)::float8 from unjudged_minutes
        where ${inRange}) as unjudged`.execute(trx);
  return rows[0]!;
}

function without(starts: ReadonlySet<number>, others: readonly number[]): ReadonlySet<number> {
  if (others.length === 0) return starts;
  const left = new Set(starts);
  for (const one of others) left.delete(one);
  return left;
}

/** Takes whole units (hours, days) that are rolled up out of spans. */
function splitSpans(
  spans: readonly Span[],
  rolled: ReadonlySet<number>,
  unitSeconds: number,
): { starts: number[]; spans: Span[] } {
  const starts: number[] = [];
  const rest: Span[] = [];
  for (const { from, to } of spans) {
    let open = from;
    const first = Math.ceil(from / unitSeconds) * unitSeconds;
    for (let start = first; start + unitSeconds <= to; start += unitSeconds) {
      if (!rolled.has(start)) continue;
      if (open < start) rest.push({ from: open, to: start });
      starts.push(start);
      open = start + unitSeconds;
    }
    if (open < to) rest.push({ from: open, to });
  }
  return { starts, spans: rest };
}

/** The same parts without hours, for steps that hours don't fit into: hours that are kept were judged whole. */
export function withoutHours(parts: Parts & MinuteParts): Parts & MinuteParts {
  const hours = spansOf(parts.hours, hourSeconds);
  return {
    hours: [],
    spans: uniteSpans(parts.spans, hours),
    judged: uniteSpans(parts.judged, hours),
    unjudged: parts.unjudged,
  };
}

/** Divides spans of minutes by whether each minute is among these. */
function splitMinutes(spans: readonly Span[], unjudged: ReadonlySet<number>): MinuteParts {
  const parts: MinuteParts = { judged: [], unjudged: [] };
  const minutes = [...unjudged].sort((a, b) => a - b);
  for (const { from, to } of spans) {
    let open = from;
    for (const minute of minutes) {
      if (minute < open || minute >= to) continue;
      if (open < minute) parts.judged.push({ from: open, to: minute });
      const last = parts.unjudged.at(-1);
      if (last?.to === minute) last.to = minute + 60;
      else parts.unjudged.push({ from: minute, to: minute + 60 });
      open = minute + 60;
    }
    if (open < to) parts.judged.push({ from: open, to });
  }
  return parts;
}

/** Units as spans, adjoining ones as one. */
export function spansOf(starts: readonly number[], unitSeconds: number): Span[] {
  const spans: Span[] = [];
  for (const start of starts) {
    const last = spans.at(-1);
    if (last?.to === start) last.to += unitSeconds;
    else spans.push({ from: start, to: start + unitSeconds });
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

/** Condition that the column is the start of one of these units. */
export const inStarts = (
  starts: readonly number[],
  unitSeconds: number,
  column: string,
): RawBuilder<unknown> => inSpans(spansOf(starts, unitSeconds), column);

/** Condition that `hour` is one of the rolled-up hours. */
export const inHours = (hours: readonly number[]): RawBuilder<unknown> =>
  inStarts(hours, hourSeconds, 'hour');
