/** Every statement on what all feeds share: cursors, parts set aside, states. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Position, SetAside, Visit } from './round.ts';

/** Of these items those that waited longest, never visited ones first and else in the order given. */
export async function listLongestWaiting(
  db: Queryable,
  feed: string,
  keys: readonly string[],
  limit: number,
  notVisitedSince: Date | null,
): Promise<{ key: string; position: Position | null }[]> {
  const { rows } = await sql<{ key: string; position: Position | null }>`
    select given.key, c.position
    from unnest(${[...keys]}::text[]) with ordinality as given(key, place)
    left join feed_cursors c on c.feed = ${feed} and c.item = given.key
    where ${notVisitedSince}::timestamptz is null or c.last_visit_at is null or c.last_visit_at < ${notVisitedSince}
    order by c.last_visit_at nulls first, given.place
    limit ${limit}`.execute(db);
  return rows;
}

/** Parts of these items that were set aside within the last hour, by key; after it they are tried again. */
export async function listSetAside(
  db: Queryable,
  feed: string,
  keys: readonly string[],
): Promise<Map<string, SetAside[]>> {
  const { rows } = await sql<SetAside & { key: string }>`
    select item as key, part, reason, fingerprint from feed_set_aside
    where feed = ${feed} and item = any(${[...keys]}::text[])
      and noted_at > svc_now() - interval '1 hour'`.execute(db);
  return Map.groupBy(rows, ({ key }) => key);
}

/** Writes visits: each one's cursor, and the parts that it set aside. */
export async function writeVisits(db: Queryable, feed: string, visits: readonly Visit[]): Promise<void> {
  const cursors = visits.map(({ key, position, outcome }) => ({ key, position, outcome }));
  await sql`
    insert into feed_cursors (feed, item, position, last_visit_at, last_outcome)
    select ${feed}, key, nullif(position, 'null'::jsonb), svc_now(), outcome
    from jsonb_to_recordset(${JSON.stringify(cursors)}::jsonb) as given(key text, position jsonb, outcome text)
    on conflict (feed, item) do update set position = excluded.position, last_visit_at = svc_now(),
      last_outcome = excluded.last_outcome, updated_at = svc_now()`.execute(db);
  const aside = visits.flatMap(({ key, setAside = [] }) => setAside.map((one) => ({ ...one, key })));
  if (aside.length === 0) return;
  await sql`
    insert into feed_set_aside (feed, item, part, reason, fingerprint)
    select ${feed}, key, part, reason, fingerprint
    from jsonb_to_recordset(${JSON.stringify(aside)}::jsonb) as given(key text, part bigint, reason text, fingerprint text)
    on conflict (feed, item, part) do update set reason = excluded.reason, fingerprint = excluded.fingerprint,
      noted_at = svc_now()`.execute(db);
}

/** An item that does not get through, for people. */
export interface HeldBack {
  feed: string;
  /** Its address where it is an allocation, else its key. */
  item: string;
  /** Of its last visit. */
  outcome: string;
  visitedAtMs: number;
  /** Parts that are set aside, and the newest of them. */
  setAside: number;
  newestSetAside: number | null;
  reason: string | null;
}

/** Outcomes of a feed with which an item is held back. */
export interface HeldOutcomes {
  feed: string;
  /** Items are allocation generations: those that operations lists no longer are not shown. */
  isOfAllocations: boolean;
  outcomes: readonly string[];
}

/** Items whose last visit held them back, or of which parts of the last day are set aside; the newest visits first. */
export async function listHeldBack(
  db: Queryable,
  feeds: readonly HeldOutcomes[],
  limit: number,
): Promise<HeldBack[]> {
  const { rows } = await sql<HeldBack>`
    select c.feed, coalesce(host(t.address), c.item) as item, c.last_outcome as outcome,
      (extract(epoch from c.last_visit_at) * 1000)::float8 as visited_at_ms, coalesce(aside.count, 0)::int as set_aside,
      aside.newest as newest_set_aside, aside.reason
    from feed_cursors c
    join jsonb_to_recordset(${JSON.stringify(feeds)}::jsonb) as f(feed text, "isOfAllocations" boolean, outcomes jsonb)
      on f.feed = c.feed
    left join allocation_targets t on f."isOfAllocations" and c.item = t.allocation_id || ' ' || t.assigned_at
    left join (
      select feed, item, count(*) as count, max(part) as newest, max(reason) as reason from feed_set_aside
      where noted_at > svc_now() - interval '1 day' group by 1, 2) aside on aside.feed = c.feed and aside.item = c.item
    where c.last_visit_at is not null and (t.allocation_id is not null or not f."isOfAllocations")
      and (f.outcomes ? c.last_outcome or aside.count > 0)
    order by c.last_visit_at desc, t.allocation_id, c.item limit ${limit}`.execute(db);
  return rows;
}

/** Forgets what nothing has visited since, of all feeds. */
export async function deleteCursorsBefore(db: Queryable, cutoffMs: number): Promise<number> {
  await sql`delete from feed_set_aside where noted_at < to_timestamp(${cutoffMs / 1000})`.execute(db);
  const { numAffectedRows } = await sql`
    delete from feed_cursors where updated_at < to_timestamp(${cutoffMs / 1000})`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** State of one feed (NET-2.9). */
export interface FeedState {
  lastRunAtMs: number | null;
  lastSuccessAtMs: number | null;
  /** A fixed, safe description. */
  lastError: string | null;
  lastCounts: Readonly<Record<string, number>>;
  lastReceiptAtMs: number | null;
  /** Start of the newest acknowledged observation, seconds since 1970; a replay never moves it back. */
  latestAcknowledged: number | null;
}

export async function readFeedState(db: Queryable, feed: string): Promise<FeedState | null> {
  const { rows } = await sql<FeedState>`
    select (extract(epoch from last_run_at) * 1000)::float8 as last_run_at_ms,
           (extract(epoch from last_success_at) * 1000)::float8 as last_success_at_ms, last_error, last_counts,
           (extract(epoch from last_receipt_at) * 1000)::float8 as last_receipt_at_ms,
           extract(epoch from latest_acknowledged_at)::float8 as latest_acknowledged
    from feed_states where feed = ${feed}`.execute(db);
  return rows[0] ?? null;
}

export interface FeedRun {
  error: string | null;
  counts: Readonly<Record<string, number>>;
  /** True when operations acknowledged data: empty passes are no successful delivery (NET-4.10). */
  hasReceipt: boolean;
  /** True when a fault ended the run that the next call would meet too; a refused allocation is none. */
  isHalted: boolean;
  /** The newest observation of the run, seconds since 1970. */
  acknowledged: number | null;
}

export async function writeFeedRun(db: Queryable, feed: string, run: FeedRun): Promise<void> {
  const isSuccess = run.hasReceipt && !run.isHalted;
  await sql`
    insert into feed_states as held (feed, last_run_at, last_success_at, last_error, last_counts, last_receipt_at,
      latest_acknowledged_at)
    values (${feed}, svc_now(), case when ${isSuccess} then svc_now() end, ${run.error},
      ${JSON.stringify(run.counts)}::jsonb, case when ${run.hasReceipt} then svc_now() end,
      to_timestamp(${run.acknowledged}))
    on conflict (feed) do update set last_run_at = excluded.last_run_at, last_error = excluded.last_error,
      last_counts = excluded.last_counts,
      last_success_at = coalesce(excluded.last_success_at, held.last_success_at),
      last_receipt_at = coalesce(excluded.last_receipt_at, held.last_receipt_at),
      latest_acknowledged_at = greatest(excluded.latest_acknowledged_at, held.latest_acknowledged_at)`.execute(
    db,
  );
}
