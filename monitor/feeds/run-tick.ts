/**
 * One tick of the minute feed (NET-4.3): up to 50 allocations, the longest-waiting first, one request for each.
 *
 * Every cursor is written in a transaction that holds the lease's term, so a process that was asleep while another
 * took over moves nothing. A request that fails keeps its allocation's cursor and costs it its turn only.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Applications } from '#monitor/applications/index.ts';
import {
  allowsApplicationIdentity,
  allowsFeed,
  type Connection,
  concernsEveryCall,
  type OpenConnection,
  OperationsError,
  safeFaultText,
} from '#monitor/operations-client/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Traffic } from '#monitor/traffic/index.ts';
import { holdsTerm, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { fetchTargets } from './fetch-targets.ts';
import { completeUntil } from './minutes/plan-visit.ts';
import { readAhead } from './minutes/read-ahead.ts';
import { cursorOf, rangesOf, type VisitContext, visitAllocation } from './minutes/visit-allocation.ts';
import {
  countTargets,
  dropTarget,
  listDueTargets,
  listSetAside,
  readNow,
  replaceTargets,
  type StoredTarget,
  setAsideKey,
  type VisitOutcome,
  writeFeedRun,
  writeOutcomes,
} from './store.ts';

export interface TickDeps {
  db: () => Queryable;
  connection: Connection;
  sites: Pick<Sites, 'listClusters'>;
  traffic: Pick<Traffic, 'readAddressesMinutes' | 'listCaptures'>;
  applications: Pick<Applications, 'readAddressesApplications'>;
  clock: Clock;
  /** Documentation ranges count as globally routable: lab and demo worlds alone. */
  documentationIsGlobal: boolean;
}

/** What outlives a tick in one process; all of it may be forgotten. */
export interface TickMemory {
  targetsFetchedAtMs: number | null;
}

/** A tick that another process may take over ends here, without a trace. */
class LeaseLost extends Error {}

export const feedName = 'telemetry';
const allocationsPerTick = 50;
const targetsKeptMs = 30_000;
const capabilitiesKeptMs = 5 * 60_000;
/** Two transport failures in a row: the others would meet the same. */
const transportFailuresMax = 2;

type Counts = Record<
  | 'targets'
  | 'unsupported'
  | 'unmapped'
  | 'visited'
  | 'points'
  | 'accepted'
  | 'unchanged'
  | 'unmatched'
  | 'source_conflict'
  | 'empty'
  | 'waiting'
  | 'refused'
  | 'set_aside'
  | 'failed',
  number
>;

export interface TickResult {
  counts: Counts;
  error: string | null;
  /** False where allocations are left that are due. */
  isLast: boolean;
}

/** What a tick does, and one after it in the same pass adds to. */
interface Run {
  counts: Counts;
  error: string | null;
  latestMinute: number | null;
  isHalted: boolean;
  isLast: boolean;
  /** Null: all allocations are due. */
  notVisitedSince: Date | null;
}

/**
 * Passes over all allocations, one after the other for as long as a pass takes longer than the loop's interval: a large
 * fleet is visited without a pause, a small one once an interval.
 */
export async function runPasses(
  deps: TickDeps & { intervalSeconds: number },
  memory: TickMemory,
  lease: Lease,
  renew: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<TickResult | null> {
  for (;;) {
    const beganMs = deps.clock.monotonicMs();
    const run = { ...startRun(), notVisitedSince: await readNow(deps.db()) };
    const result = await runPass(deps, memory, lease, renew, signal, run);
    const isShort = deps.clock.monotonicMs() - beganMs < deps.intervalSeconds * 1000;
    if (!result || run.isHalted || isShort || signal.aborted) return result;
  }
}

/**
 * Runs ticks one after the other until every allocation was visited that no visit had begun for when the pass did (NET-4.3:
 * each of them has at most 50 allocations, and one request for each). Null as for a tick.
 */
async function runPass(
  deps: TickDeps,
  memory: TickMemory,
  lease: Lease,
  renew: () => Promise<boolean>,
  signal: AbortSignal,
  run: Run,
): Promise<TickResult | null> {
  for (;;) {
    const result = await runTick(deps, memory, lease, renew, signal, run);
    if (!result || result.isLast || signal.aborted) return result;
  }
}

function startRun(): Run {
  const counts: Counts = {
    ...{ targets: 0, unsupported: 0, unmapped: 0, visited: 0, points: 0, accepted: 0, unchanged: 0 },
    ...{ unmatched: 0, source_conflict: 0, empty: 0, waiting: 0, refused: 0, set_aside: 0, failed: 0 },
  };
  return { counts, error: null, latestMinute: null, isHalted: false, isLast: true, notVisitedSince: null };
}

/** Runs a tick under a lease; null when there is no enabled connection or the lease was lost. */
export async function runTick(
  deps: TickDeps,
  memory: TickMemory,
  lease: Lease,
  renew: () => Promise<boolean>,
  signal: AbortSignal,
  run: Run = startRun(),
): Promise<TickResult | null> {
  const { counts } = run;
  try {
    const open = await openFeed(deps);
    if (!open) return null;
    await refreshTargets(deps, memory, open, lease, renew);
    await visitAll(deps, memory, open, lease, renew, signal, run);
  } catch (error) {
    if (error instanceof LeaseLost) return null;
    run.error = safeFaultText(error);
    run.isHalted = true;
    await writeState(deps, lease, run);
    if (!(error instanceof OperationsError)) throw error;
    return { counts, error: run.error, isLast: true };
  }
  await writeState(deps, lease, run);
  return { counts, error: run.error, isLast: run.isLast || run.isHalted };
}

/** The connection, once its project may take the feed; asks discovery where that is not known or not allowed yet. */
async function openFeed(deps: TickDeps): Promise<OpenConnection | null> {
  const open = await deps.connection.open();
  if (!open) return null;
  const isFresh = open.checkedAtMs !== null && deps.clock.nowMs() - open.checkedAtMs < capabilitiesKeptMs;
  if (isFresh && allowsFeed(open.capabilities, 'telemetry')) return open;
  await deps.connection.check();
  const checked = await deps.connection.open();
  if (!checked) return null;
  if (!allowsFeed(checked.capabilities, 'telemetry')) {
    throw new OperationsError('permission_missing', 'protect_telemetry_ingest');
  }
  return checked;
}

async function refreshTargets(
  deps: TickDeps,
  memory: TickMemory,
  open: OpenConnection,
  lease: Lease,
  renew: () => Promise<boolean>,
): Promise<void> {
  const now = deps.clock.nowMs();
  if (memory.targetsFetchedAtMs !== null && now - memory.targetsFetchedAtMs < targetsKeptMs) return;
  const targets = await fetchTargets(open.client, renew, deps.documentationIsGlobal);
  if (!targets) throw new LeaseLost();
  await underLease(deps, lease, (trx) => replaceTargets(trx, targets));
  memory.targetsFetchedAtMs = now;
}

/** A lease of 30 seconds is renewed this often, and what came of visits is written; that holds the lease's term either way. */
const renewMs = 5_000;
/** Visits that are under way at the same time. */
const visitsAtOnce = 4;

/**
 * Visits the due allocations: the first one alone, and then some at a time, so that a fault which all of them would meet
 * costs one request. Cursors are written together: a process that dies before sends what it sent once more.
 */
async function visitAll(
  deps: TickDeps,
  memory: TickMemory,
  open: OpenConnection,
  lease: Lease,
  renew: () => Promise<boolean>,
  signal: AbortSignal,
  run: Run,
): Promise<void> {
  const { counts } = run;
  const mappings = await deps.sites.listClusters();
  const siteOf = new Map(mappings.map(({ clusterId, siteId }) => [clusterId, siteId]));
  const mapped = [...siteOf.keys()];
  Object.assign(counts, await countTargets(deps.db(), mapped));
  const due = await listDueTargets(deps.db(), mapped, allocationsPerTick, run.notVisitedSince);
  const aside = await listSetAside(
    deps.db(),
    due.map(({ id }) => id),
  );
  const setAsideOf = ({ id, assignedAt }: StoredTarget) => aside.get(setAsideKey(id, assignedAt)) ?? [];
  const contextOf = createContexts(deps, open, siteOf, due, setAsideOf);
  const outcomes = createOutcomes(deps, memory, lease);
  let failuresInRow = 0;
  let renewedAtMs = Number.NEGATIVE_INFINITY;
  const visit = async (target: StoredTarget): Promise<void> => {
    if (deps.clock.monotonicMs() - renewedAtMs >= renewMs) {
      renewedAtMs = deps.clock.monotonicMs();
      await outcomes.write();
      if (!(await renew())) throw new LeaseLost();
    }
    counts.visited += 1;
    const context = await contextOf(target.clusterId);
    try {
      const result = await visitAllocation(context, target);
      outcomes.add({ target, ...result });
      counts[result.outcome] += 1;
      counts.points += result.points;
      counts.set_aside += result.setAside.length;
      run.latestMinute = Math.max(run.latestMinute ?? 0, result.latestMinute ?? 0) || null;
      failuresInRow = 0;
    } catch (error) {
      if (!(error instanceof OperationsError)) throw error;
      counts.failed += 1;
      run.error = error.message;
      // A failed request keeps the cursor, and costs the turn.
      const cursor = cursorOf(target, context.completeUntil);
      outcomes.add({ target, cursor, outcome: error.fault, setAside: [] });
      failuresInRow += 1;
      const isHopeless = error.fault !== 'timeout' && error.fault !== 'unreachable';
      if (concernsEveryCall(error.fault) && (isHopeless || failuresInRow >= transportFailuresMax))
        run.isHalted = true;
    }
  };
  const [first, ...others] = due;
  run.isLast = due.length < allocationsPerTick;
  const queue = others.values();
  const work = async () => {
    for (const target of queue) {
      if (signal.aborted || run.isHalted) return;
      await visit(target);
    }
  };
  const visits = async () => {
    if (first && !signal.aborted) await visit(first);
    const done = await Promise.allSettled(Array.from({ length: visitsAtOnce }, work));
    const fault = done.find((one) => one.status === 'rejected');
    if (fault) throw fault.reason;
  };
  await visits().catch(async (fault) => {
    if (!(fault instanceof LeaseLost)) await outcomes.write();
    throw fault;
  });
  await outcomes.write();
}

/** What all allocations of a site share, read once a tick, with what their visits send. */
function createContexts(
  deps: TickDeps,
  open: OpenConnection,
  siteOf: ReadonlyMap<number, number>,
  due: readonly StoredTarget[],
  setAsideOf: VisitContext['setAsideOf'],
): (clusterId: number) => Promise<VisitContext> {
  const contexts = new Map<number, Promise<VisitContext>>();
  return (clusterId) => {
    const siteId = siteOf.get(clusterId)!;
    const known = contexts.get(siteId);
    if (known) return known;
    const made = (async (): Promise<VisitContext> => {
      const until = completeUntil(await deps.traffic.listCaptures(siteId), deps.clock.nowMs());
      const ranges = due
        .filter((target) => siteOf.get(target.clusterId) === siteId)
        .flatMap((target) => rangesOf(target, until));
      return {
        read: await readAhead(deps, siteId, ranges),
        client: open.client,
        siteId,
        clusterIds: [...siteOf].filter(([, site]) => site === siteId).map(([cluster]) => cluster),
        completeUntil: until,
        withIdentity: allowsApplicationIdentity(open.capabilities),
        setAsideOf,
      };
    })();
    contexts.set(siteId, made);
    return made;
  };
}

/** What came of visits, until it is written. */
function createOutcomes(deps: TickDeps, memory: TickMemory, lease: Lease) {
  let pending: VisitOutcome[] = [];
  return {
    add(outcome: VisitOutcome) {
      pending.push(outcome);
    },
    async write() {
      if (pending.length === 0) return;
      const outcomes = pending;
      pending = [];
      const unmatched = outcomes.filter(({ outcome }) => outcome === 'unmatched');
      await underLease(deps, lease, async (trx) => {
        await writeOutcomes(trx, outcomes);
        for (const { target } of unmatched) await dropTarget(trx, target.id, target.assignedAt);
      });
      // Operations knows another owner by now: ask for the targets again at the next tick.
      if (unmatched.length > 0) memory.targetsFetchedAtMs = null;
    },
  };
}

async function writeState(deps: TickDeps, lease: Lease, run: Run): Promise<void> {
  const { counts, error, isHalted, latestMinute } = run;
  await underLease(deps, lease, (trx) =>
    writeFeedRun(trx, feedName, {
      error,
      isHalted,
      counts,
      hasReceipt: counts.accepted + counts.unchanged > 0,
      latestAcknowledgedMinute: latestMinute,
    }),
  ).catch((fault) => {
    if (!(fault instanceof LeaseLost)) throw fault;
  });
}

/** A transaction that commits only under the lease's term. */
async function underLease(
  deps: TickDeps,
  lease: Lease,
  work: (trx: Queryable) => Promise<void>,
): Promise<void> {
  await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
      await work(trx);
    });
}
