import type { Part } from '#common/lifecycle/index.ts';
import { createWorkLoop } from '#common/lifecycle/work-loop.ts';
import type { LoopDeps } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Claim, releaseClaim, renewClaim } from './store.ts';

export { type Claim, isUnclaimed, setClaim } from './store.ts';

export interface OutboxDeclaration<Target extends Claim, Message> {
  /** The name of the loop. */
  name: string;
  /** The log line when the loop can't work. */
  failure: string;
  /** The table of the targets. It has the columns `id`, `term` and `claimed_until`. */
  table: string;
  /** Loops in each process. */
  workers: number;
  /** Comes before each claim; true when it found something to do. */
  prepare(): Promise<boolean>;
  /** Claims the target that is next (`isUnclaimed`, `setClaim`); null when nothing is due. */
  claim(db: Queryable, claimSeconds: number): Promise<Target | null>;
  /** The target's next message if it is due. */
  next(db: Queryable, target: Target): Promise<Message | null>;
  /** One attempt, recorded under the target's term; true when the receiver accepted, so that the next may follow. */
  attempt(target: Target, message: Message, signal: AbortSignal): Promise<boolean>;
}

export interface OutboxSender extends Part {
  /** Delivers what is due, until nothing is; for tests. */
  drain(): Promise<void>;
}

/** Longer than any attempt. */
const claimSeconds = 60;
/** Messages of a target before others have a turn. */
const batchMax = 20;
const pollMs = 1_000;

export function createOutboxSender<Target extends Claim, Message>(
  outbox: OutboxDeclaration<Target, Message>,
  deps: LoopDeps,
): OutboxSender {
  const { db, clock, reporter } = deps;
  const { name, failure, workers, table } = outbox;

  /** In order, until one fails, nothing is due, the claim is lost, or others should have a turn. */
  async function serve(target: Target, signal: AbortSignal): Promise<void> {
    for (let sent = 0; sent < batchMax && !signal.aborted; sent += 1) {
      const message = await outbox.next(db(), target);
      if (message === null) return;
      if (!(await renewClaim(db(), table, target, claimSeconds))) return;
      if (!(await outbox.attempt(target, message, signal))) return;
    }
  }

  async function work(signal: AbortSignal): Promise<boolean> {
    const didPrepare = await outbox.prepare();
    const target = await outbox.claim(db(), claimSeconds);
    if (target === null) return didPrepare;
    try {
      await serve(target, signal);
    } finally {
      await releaseClaim(db(), table, target);
    }
    return true;
  }

  return createWorkLoop({ name, clock, reporter, pollMs, workers, failure, work });
}
