import { sql } from 'kysely';
import type { AllocationTarget } from '#contracts/admin-api/schemas.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Cursor } from './minutes/plan-visit.ts';

/** A target of the last complete page-through, with its cursor where it was visited before. */
export interface StoredTarget {
  id: number;
  virtualMachineId: number;
  clusterId: number;
  /** Canonical text. */
  address: string;
  assignedAt: string;
  cursor: Cursor | null;
}

/** Replaces the cached targets by a complete page-through. */
export async function replaceTargets(
  db: Queryable,
  targets: readonly (AllocationTarget & { is_supported: boolean })[],
): Promise<void> {
  await sql`delete from allocation_targets`.execute(db);
  await sql`
    insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address,
      assigned_at, is_supported)
    select t.id, t.billing_account_id, t.virtual_machine_id, t.cluster_id, t.address, t.assigned_at, t.is_supported
    from jsonb_to_recordset(${JSON.stringify(targets)}::jsonb) as t(id bigint, billing_account_id bigint,
      virtual_machine_id bigint, cluster_id bigint, address inet, assigned_at text, is_supported boolean)`.execute(
    db,
  );
}

/** Forgets one target that operations no longer knows; the next page-through says what stands in its place. */
export async function dropTarget(db: Queryable, id: number, assignedAt: string): Promise<void> {
  await sql`delete from allocation_targets where allocation_id = ${id} and assigned_at = ${assignedAt}`.execute(
    db,
  );
}

export interface TargetCounts {
  targets: number;
  unsupported: number;
  unmapped: number;
}

export async function countTargets(db: Queryable, clusterIds: readonly number[]): Promise<TargetCounts> {
  const { rows } = await sql<TargetCounts>`
    select count(*)::int as targets, count(*) filter (where not is_supported)::int as unsupported,
           count(*) filter (where is_supported and cluster_id <> all(${[...clusterIds]}::bigint[]))::int as unmapped
    from allocation_targets`.execute(db);
  return rows[0]!;
}

/** The database's time. */
export async function readNow(db: Queryable): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select svc_now() as now`.execute(db);
  return rows[0]!.now;
}

/** A minute that is not sent. */
export interface SetAside {
  /** Start of the minute, seconds since 1970. */
  minute: number;
  reason: string;
  /** Of the point as it was. */
  fingerprint: string;
}

/** Minutes of these allocations that were set aside within the last hour; after it they are tried again. */
export async function listSetAside(
  db: Queryable,
  allocationIds: readonly number[],
): Promise<Map<string, SetAside[]>> {
  const { rows } = await sql<SetAside & { id: number; assignedAt: string }>`
    select allocation_id as id, assigned_at as "assignedAt", extract(epoch from minute)::float8 as minute, reason, fingerprint
    from delivery_set_aside
    where allocation_id = any(${[...allocationIds]}::bigint[]) and noted_at > svc_now() - interval '1 hour'`.execute(
    db,
  );
  return Map.groupBy(rows, ({ id, assignedAt }) => setAsideKey(id, assignedAt));
}

export function setAsideKey(allocationId: number, assignedAt: string): string {
  return `${allocationId} ${assignedAt}`;
}

/** An allocation that does not receive everything, for people. */
export interface HeldBack {
  allocationId: number;
  address: string;
  /** Of its last visit. */
  outcome: string;
  visitedAtMs: number;
  /** Minutes that are set aside, and the newest of them. */
  setAside: number;
  newestSetAside: number | null;
  reason: string | null;
}

/** Allocations whose last visit was refused, or of which minutes of the last day are set aside; the newest visits first. */
export async function listHeldBack(db: Queryable, limit: number): Promise<HeldBack[]> {
  const { rows } = await sql<HeldBack>`
    select t.allocation_id as "allocationId", host(t.address) as address, c.last_outcome as outcome,
      (extract(epoch from c.last_visit_at) * 1000)::float8 as "visitedAtMs", coalesce(aside.count, 0)::int as "setAside",
      extract(epoch from aside.newest)::float8 as "newestSetAside", aside.reason
    from allocation_targets t
    join delivery_cursors c on c.allocation_id = t.allocation_id and c.assigned_at = t.assigned_at
    left join lateral (
      select count(*) as count, max(minute) as newest, max(reason) as reason from delivery_set_aside s
      where s.allocation_id = t.allocation_id and s.assigned_at = t.assigned_at
        and s.noted_at > svc_now() - interval '1 day') aside on true
    where c.last_visit_at is not null
      and (c.last_outcome in ('source_conflict', 'unmatched', 'refused') or aside.count > 0)
    order by c.last_visit_at desc, t.allocation_id limit ${limit}`.execute(db);
  return rows;
}

/**
 * The targets that waited longest: all of them, or those that no visit has begun for since then. A failed visit counts as a visit, so that one that always fails goes to the end of
 * the queue and starves nobody.
 */
export async function listDueTargets(
  db: Queryable,
  clusterIds: readonly number[],
  limit: number,
  notVisitedSince: Date | null,
): Promise<StoredTarget[]> {
  const { rows } = await sql<
    Omit<StoredTarget, 'cursor'> & { deliveredUntil: number | null; sweptUntil: number | null }
  >`
    select t.allocation_id as id, t.virtual_machine_id as "virtualMachineId", t.cluster_id as "clusterId",
           host(t.address) as address, t.assigned_at as "assignedAt",
           extract(epoch from c.delivered_until)::float8 as "deliveredUntil",
           extract(epoch from c.swept_until)::float8 as "sweptUntil"
    from allocation_targets t
    left join delivery_cursors c on c.allocation_id = t.allocation_id and c.assigned_at = t.assigned_at
    where t.is_supported and t.cluster_id = any(${[...clusterIds]}::bigint[])
      and (${notVisitedSince}::timestamptz is null or c.last_visit_at is null or c.last_visit_at < ${notVisitedSince})
    order by c.last_visit_at nulls first, t.allocation_id
    limit ${limit}`.execute(db);
  return rows.map(({ deliveredUntil, sweptUntil, ...target }) => ({
    ...target,
    cursor: deliveredUntil === null || sweptUntil === null ? null : { deliveredUntil, sweptUntil },
  }));
}

/**
 * Exact addresses of the supported targets of these clusters; for a sensor without those that servers of other nodes
 * alone have.
 */
export async function listAddresses(
  db: Queryable,
  clusterIds: readonly number[],
  sensorId: number | null,
): Promise<string[]> {
  const ofClusters = sql`cluster_id = any(${[...clusterIds]}::bigint[])`;
  const isSpokenFor = sql`p.node is null or p.node = s.node and coalesce(p.cluster_id = s.cluster_id, true)`;
  const { rows } = await sql<{ address: string }>`
    with foreign_addresses as (
      select p.address from vm_placements p join sensors s on s.id = ${sensorId}::bigint
      where p.ended_at is null and p.address is not null and p.${ofClusters}
      group by p.address having not bool_or(${isSpokenFor}))
    select distinct host(t.address) as address
    from allocation_targets t left join foreign_addresses f on f.address = t.address
    where t.is_supported and t.${ofClusters} and f.address is null order by 1`.execute(db);
  return rows.map((row) => row.address);
}

/** What came of a visit. */
export interface VisitOutcome {
  target: { id: number; assignedAt: string };
  cursor: Cursor;
  outcome: string;
  /** Minutes that were not sent, or not taken. */
  setAside: readonly SetAside[];
}

/** Notes visits, each one's cursor and the minutes that it set aside. */
export async function writeOutcomes(db: Queryable, outcomes: readonly VisitOutcome[]): Promise<void> {
  const visits = outcomes.map(({ target, cursor, outcome }) => ({ ...target, ...cursor, outcome }));
  await sql`
    insert into delivery_cursors (allocation_id, assigned_at, delivered_until, swept_until, last_visit_at, last_outcome)
    select id, "assignedAt", to_timestamp("deliveredUntil"), to_timestamp("sweptUntil"), svc_now(), outcome
    from jsonb_to_recordset(${JSON.stringify(visits)}::jsonb) as given(id bigint, "assignedAt" text,
      "deliveredUntil" float8, "sweptUntil" float8, outcome text)
    on conflict (allocation_id, assigned_at) do update set delivered_until = excluded.delivered_until,
      swept_until = excluded.swept_until, last_visit_at = svc_now(), last_outcome = excluded.last_outcome,
      updated_at = svc_now()`.execute(db);
  const aside = outcomes.flatMap(({ target, setAside }) => setAside.map((one) => ({ ...target, ...one })));
  if (aside.length === 0) return;
  await sql`
    insert into delivery_set_aside (allocation_id, assigned_at, minute, reason, fingerprint)
    select id, "assignedAt", to_timestamp(minute), reason, fingerprint
    from jsonb_to_recordset(${JSON.stringify(aside)}::jsonb) as given(id bigint, "assignedAt" text, minute float8,
      reason text, fingerprint text)
    on conflict (allocation_id, assigned_at, minute) do update set reason = excluded.reason,
      fingerprint = excluded.fingerprint, noted_at = svc_now()`.execute(db);
}

export async function deleteCursorsBefore(db: Queryable, cutoffMs: number): Promise<number> {
  await sql`delete from delivery_set_aside where noted_at < to_timestamp(${cutoffMs / 1000})`.execute(db);
  const { numAffectedRows } = await sql`
    delete from delivery_cursors where updated_at < to_timestamp(${cutoffMs / 1000})`.execute(db);
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
  /** Start of the newest acknowledged minute, seconds since 1970. */
  latestAcknowledgedMinute: number | null;
}

export async function readFeedState(db: Queryable, feed: string): Promise<FeedState | null> {
  const { rows } = await sql<FeedState>`
    select (extract(epoch from last_run_at) * 1000)::float8 as "lastRunAtMs",
           (extract(epoch from last_success_at) * 1000)::float8 as "lastSuccessAtMs", last_error as "lastError",
           last_counts as "lastCounts", (extract(epoch from last_receipt_at) * 1000)::float8 as "lastReceiptAtMs",
           extract(epoch from latest_acknowledged_minute)::float8 as "latestAcknowledgedMinute"
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
  latestAcknowledgedMinute: number | null;
}

export async function writeFeedRun(db: Queryable, feed: string, run: FeedRun): Promise<void> {
  const isSuccess = run.hasReceipt && !run.isHalted;
  await sql`
    insert into feed_states as held (feed, last_run_at, last_success_at, last_error, last_counts, last_receipt_at,
      latest_acknowledged_minute)
    values (${feed}, svc_now(), case when ${isSuccess} then svc_now() end, ${run.error},
      ${JSON.stringify(run.counts)}::jsonb, case when ${run.hasReceipt} then svc_now() end,
      to_timestamp(${run.latestAcknowledgedMinute}))
    on conflict (feed) do update set last_run_at = excluded.last_run_at, last_error = excluded.last_error,
      last_counts = excluded.last_counts,
      last_success_at = coalesce(excluded.last_success_at, held.last_success_at),
      last_receipt_at = coalesce(excluded.last_receipt_at, held.last_receipt_at),
      latest_acknowledged_minute = greatest(excluded.latest_acknowledged_minute, held.latest_acknowledged_minute)`.execute(
    db,
  );
}
