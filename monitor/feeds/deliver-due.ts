import {
  concernsEveryCall,
  OperationsError,
  type OperationsFault,
} from '#monitor/operations-client/index.ts';
import { LeaseLost, underLease } from '#service-kit/leases/index.ts';
import { isConnectionFailure } from '#service-kit/postgres/index.ts';
import type { Parcel } from './feed.ts';
import type { FeedItem, Round, Visit } from './round.ts';
import type { Run, RunDeps, Turn } from './run-feed.ts';
import { writeVisits } from './store.ts';

/** A lease of 30 seconds is renewed this often, and visits are written; that holds the lease's term either way. */
const renewMs = 5_000;
/** Two transport failures in a row: the others would meet the same. */
const transportFailuresMax = 2;

/**
 * Delivers the due items of one tick: the first request alone, and then some at a time, so that a fault which all of them
 * would meet costs one request. Cursors are written together: a process that dies before sends what it sent once more.
 */
export async function deliverDue(deps: RunDeps, turn: Turn, round: Round, run: Run): Promise<void> {
  const { batch } = deps.feed;
  const { items, counts } = await deps.work.due(round);
  Object.assign(run.counts, counts);
  run.isLast = items.length < round.limit;
  const visits = createVisits(deps, turn, run);
  const faults = createFaultLimit(run);
  let renewedAtMs = Number.NEGATIVE_INFINITY;

  const deliver = async (sent: readonly FeedItem[]): Promise<void> => {
    if (deps.clock.monotonicMs() - renewedAtMs >= renewMs) {
      renewedAtMs = deps.clock.monotonicMs();
      await visits.write();
      await round.renew();
    }
    const halves = await sendParcel(deps, round, sent, visits, faults);
    for (const half of halves) if (!run.isHalted && !turn.signal.aborted) await deliver(half);
  };
  const groupOf = deps.work.groupOf ?? (() => '');
  const [first, ...others] = chunksOf(items, batch.itemsPerRequest, groupOf);
  const queue = others.values();
  const work = async () => {
    for (const chunk of queue) {
      if (turn.signal.aborted || run.isHalted) return;
      run.counts.visited! += chunk.length;
      await deliver(chunk);
    }
  };
  try {
    if (first && !turn.signal.aborted) {
      run.counts.visited! += first.length;
      await deliver(first);
    }
    const done = await Promise.allSettled(Array.from({ length: batch.requestsAtOnce }, work));
    const fault = done.find((one) => one.status === 'rejected');
    if (fault) throw fault.reason;
  } finally {
    // What came of visits counts also where a fault of ours ended the tick; without the lease nothing is written.
    await visits.write();
  }
}

/** What can't be made of one item keeps no other from being delivered; a database that is away concerns all. */
async function build({ work, feed, reporter }: RunDeps, round: Round, items: readonly FeedItem[]) {
  try {
    return await work.build(items, round);
  } catch (error) {
    if (error instanceof OperationsError || error instanceof LeaseLost || isConnectionFailure(error))
      throw error;
    reporter.error('stored data can not be delivered', { feed: feed.name, item: items[0]!.key, error });
    throw new OperationsError('unreadable');
  }
}

/** Sends one parcel and notes its visits. Returns what has to be sent again in smaller parcels. */
async function sendParcel(
  deps: RunDeps,
  round: Round,
  items: readonly FeedItem[],
  visits: Visits,
  faults: FaultLimit,
): Promise<(readonly FeedItem[])[]> {
  let parcel: Parcel<unknown, unknown> | null = null;
  try {
    parcel = await build(deps, round, items);
    visits.add(parcel.visits);
    if (parcel.request === null) return [];
    const taken = parcel.take(await round.client.deliver(deps.feed.contract, parcel.request));
    if (!answersEach(items, [...parcel.visits, ...taken])) throw new OperationsError('malformed');
    visits.add(taken);
    faults.succeeded();
  } catch (error) {
    if (!(error instanceof OperationsError)) throw error;
    const named = parcel?.takeRefusal?.(error.refusedFields) ?? [];
    if (named.length > 0) {
      visits.add(named);
      faults.succeeded();
      return [];
    }
    const done = new Set(parcel?.visits.map(({ key }) => key));
    const failed = items.filter(({ key }) => !done.has(key));
    // One record must not keep those beside it from being delivered.
    if (['refused', 'unreadable'].includes(error.fault) && failed.length > 1) {
      const middle = Math.ceil(failed.length / 2);
      return [failed.slice(0, middle), failed.slice(middle)];
    }
    // A failed request keeps the cursors, and costs the turn.
    visits.addFailed(failed, error.fault);
    faults.failed(error);
  }
  return [];
}

/** True when each of these items has one visit, and no other one has: receipts about something else prove nothing. */
function answersEach(items: readonly FeedItem[], visits: readonly Visit[]): boolean {
  const open = new Set(items.map(({ key }) => key));
  return visits.every(({ key }) => open.delete(key)) && open.size === 0;
}

type Visits = ReturnType<typeof createVisits>;

/** Results of items that are not written yet. */
function createVisits({ db, feed, work }: RunDeps, turn: Turn, run: Run) {
  let pending: Visit[] = [];
  const count = (name: string, added: number) => {
    run.counts[name] = (run.counts[name] ?? 0) + added;
  };
  return {
    add(visits: readonly Visit[]) {
      for (const visit of visits) {
        pending.push(visit);
        count(visit.outcome, 1);
        count('set_aside', visit.setAside?.length ?? 0);
        for (const [name, added] of Object.entries(visit.counts ?? {})) count(name, added);
        run.acknowledged = Math.max(run.acknowledged ?? 0, visit.acknowledged ?? 0) || null;
      }
    },
    addFailed(items: readonly FeedItem[], fault: OperationsFault) {
      count('failed', items.length);
      pending.push(...items.map(({ key, position }) => ({ key, position, outcome: fault })));
    },
    async write() {
      if (pending.length === 0) return;
      const visits = pending;
      pending = [];
      await underLease(db(), turn.lease, async (trx) => {
        await writeVisits(trx, feed.name, visits);
        await work.settle?.(trx, visits);
      });
    },
  };
}

type FaultLimit = ReturnType<typeof createFaultLimit>;

/** Ends the run at a fault that the next call would meet too: at once, or after two transport failures in a row. */
function createFaultLimit(run: Run) {
  let failuresInRow = 0;
  return {
    succeeded() {
      failuresInRow = 0;
    },
    failed({ fault, message }: OperationsError) {
      run.error = message;
      failuresInRow += 1;
      const isHopeless = fault !== 'timeout' && fault !== 'unreachable';
      if (concernsEveryCall(fault) && (isHopeless || failuresInRow >= transportFailuresMax))
        run.isHalted = true;
    },
  };
}

/** Items of a group, at most so many together; groups in the order of their first items. */
function chunksOf(
  items: readonly FeedItem[],
  size: number,
  groupOf: (item: FeedItem) => string,
): FeedItem[][] {
  const chunks: FeedItem[][] = [];
  for (const group of Map.groupBy(items, groupOf).values()) {
    for (let i = 0; i < group.length; i += size) chunks.push(group.slice(i, i + size));
  }
  return chunks;
}
