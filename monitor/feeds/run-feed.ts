/**
 * Runs one feed: ticks of a bounded number of items, the longest-waiting first, for as long as items are due.
 *
 * Every cursor is written in a transaction that holds the lease's term, so a process that was asleep while another
 * took over moves nothing. A request that fails keeps its items' cursors and costs them their turn only.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { isSpoken } from '#contracts/admin-api/contract.ts';
import type { Connection } from '#monitor/operations-client/index.ts';
import { type OpenConnection, OperationsError, safeFaultText } from '#monitor/operations-client/index.ts';
import type { Lease } from '#service-kit/leases/index.ts';
import { LeaseLost, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { readNowMs } from '#service-kit/postgres/index.ts';
import { deliverDue } from './deliver-due.ts';
import type { Feed, FeedWork } from './feed.ts';
import type { FeedItem, Round } from './round.ts';
import * as store from './store.ts';

export interface TickResult {
  counts: Record<string, number>;
  error: string | null;
  /** False where items are left that are due. */
  isLast: boolean;
}

const capabilitiesKeptMs = 5 * 60_000;

/**
 * Passes over all items, one after the other for as long as a pass takes longer than the loop's interval: many items are
 * visited without a pause, few once an interval.
 */
export async function runPasses(deps: RunDeps, turn: Turn): Promise<TickResult | null> {
  for (;;) {
    const beganMs = deps.clock.monotonicMs();
    const run = { ...startRun(deps.feed), notVisitedSince: new Date(await readNowMs(deps.db())) };
    const result = await runPass(deps, turn, run);
    const isShort = deps.clock.monotonicMs() - beganMs < deps.intervalSeconds * 1000;
    if (!result || run.isHalted || isShort || turn.signal.aborted) return result;
  }
}

/** Runs ticks until every item was visited that no visit had begun for when the pass did. Null as for a tick. */
async function runPass(deps: RunDeps, turn: Turn, run: Run): Promise<TickResult | null> {
  for (;;) {
    const result = await runTick(deps, turn, run);
    if (!result || result.isLast || turn.signal.aborted) return result;
  }
}

function startRun({ outcomes, counts = [] }: Feed): Run {
  const names = ['visited', 'failed', 'set_aside', ...Object.keys(outcomes), ...counts];
  return {
    counts: Object.fromEntries(names.map((name) => [name, 0])),
    ...{ error: null, acknowledged: null, isHalted: false, isLast: true, notVisitedSince: null },
  };
}

/** Runs a tick under a lease; null when there is no enabled connection or the lease was lost. */
export async function runTick(
  deps: RunDeps,
  turn: Turn,
  run: Run = startRun(deps.feed),
): Promise<TickResult | null> {
  const { counts } = run;
  try {
    const open = await openFeed(deps);
    if (!open) return null;
    const round = createRound(deps, turn, open, run);
    await deps.work.prepare?.(round);
    await deliverDue(deps, turn, round, run);
  } catch (error) {
    if (error instanceof LeaseLost) return null;
    run.error = safeFaultText(error);
    run.isHalted = true;
    await writeState(deps, turn.lease, run);
    if (!(error instanceof OperationsError)) throw error;
    return { counts, error: run.error, isLast: true };
  }
  await writeState(deps, turn.lease, run);
  return { counts, error: run.error, isLast: run.isLast || run.isHalted };
}

/** The connection, once its project may deliver; asks discovery where that is not known or not allowed yet. */
async function openFeed({ connection, clock, feed }: RunDeps): Promise<OpenConnection | null> {
  const open = await connection.open();
  if (!open) return null;
  const isFresh = open.checkedAtMs !== null && clock.nowMs() - open.checkedAtMs < capabilitiesKeptMs;
  if (isFresh && isSpoken(open.capabilities, feed.contract)) return open;
  await connection.check();
  const checked = await connection.open();
  if (!checked) return null;
  if (!isSpoken(checked.capabilities, feed.contract))
    throw new OperationsError('permission_missing', feed.contract.permission);
  return checked;
}

function createRound({ db, feed }: RunDeps, turn: Turn, open: OpenConnection, run: Run): Round {
  const limit = feed.batch.itemsPerTick;
  const { notVisitedSince } = run;
  return {
    client: open.client,
    capabilities: open.capabilities,
    connectionRevision: open.revision,
    limit,
    notVisitedSince,
    count(name, added) {
      run.counts[name] = (run.counts[name] ?? 0) + added;
    },
    async renew() {
      if (!(await turn.renew())) throw new LeaseLost();
    },
    write: (work) => underLease(db(), turn.lease, work),
    async pickDue(candidates) {
      const byKey = new Map(candidates.map((candidate) => [candidate.key, candidate]));
      const due = await store.listLongestWaiting(db(), feed.name, [...byKey.keys()], limit, notVisitedSince);
      return due.map(({ key, position }) => ({ ...byKey.get(key)!, position }));
    },
    listSetAside: (keys) => store.listSetAside(db(), feed.name, keys),
  };
}

async function writeState({ db, feed }: RunDeps, lease: Lease, run: Run): Promise<void> {
  const { counts, error, isHalted, acknowledged } = run;
  const receipts = Object.entries(feed.outcomes)
    .filter(([, meaning]) => meaning === 'acknowledged')
    .reduce((sum, [outcome]) => sum + (counts[outcome] ?? 0), 0);
  await underLease(db(), lease, (trx) =>
    store.writeFeedRun(trx, feed.name, { error, isHalted, counts, hasReceipt: receipts > 0, acknowledged }),
  ).catch((fault) => {
    if (!(fault instanceof LeaseLost)) throw fault;
  });
}

// One run of a feed: what it works with, under which lease, and what it has done so far.

export interface RunDeps {
  db: () => Queryable;
  connection: Connection;
  clock: Clock;
  reporter: Reporter;
  feed: Feed;
  work: FeedWork<FeedItem, unknown, unknown>;
  intervalSeconds: number;
}

/** The lease under which a run works. */
export interface Turn {
  lease: Lease;
  /** False when the lease was lost. */
  renew(): Promise<boolean>;
  signal: AbortSignal;
}

/** What a tick does, and one after it in the same pass adds to. */
export interface Run extends TickResult {
  acknowledged: number | null;
  /** A fault ended the run that the next call would meet too. */
  isHalted: boolean;
  /** Null: all items are due. */
  notVisitedSince: Date | null;
}
