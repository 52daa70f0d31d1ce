import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';
import { noteOutcome } from './store.ts';

/**
 * Who runs a background loop now: a renewable database lease with a term, all times by the database's clock.
 *
 * Every effect of the loop must be fenced: its statement asks for `heldTerm`, or it runs in `underLease` or `ifHeld`, so
 * that a holder that slept past its time changes nothing.
 */

export { cutPastHolder, heldTerm, holdsTerm, type LeaseState, listLeases, nameTerm } from './store.ts';

// Holding a lease in a process: what it may believe about its own term, and for how long.
//
// The database decides by its clock. A process trusts a term only until the moment at which it asked plus the lease's
// time minus a margin, by its monotonic clock, so an answer that comes late never makes it trust longer.

/** A held lease. */
export interface Lease {
  name: string;
  holder: string;
  term: number;
  /** Until here, by the monotonic clock, its holder may take it for held without asking. */
  trustedUntilMs: number;
}

interface HoldingDeps {
  db: () => Queryable;
  clock: Clock;
  /** How long a lease outlives its holder. */
  ttlSeconds: number;
}

/** Part of the time that is not trusted: clocks drift, and what was begun wants to end. */
const marginShare = 0.1;

/** Takes a lease, or takes up the own one again; null while another process holds it or when the answer came too late. */
export async function takeLease(deps: HoldingDeps, name: string, holder: string): Promise<Lease | null> {
  const askedAtMs = deps.clock.monotonicMs();
  const term = await store.takeLease(deps.db(), name, holder, deps.ttlSeconds);
  if (term === null) return null;
  const lease = { name, holder, term, trustedUntilMs: trustFrom(deps, askedAtMs) };
  return isTrusted(deps, lease) ? lease : null;
}

/** Renews this very term; false when it is lost or the answer came too late to believe it. */
export async function renewLease(deps: HoldingDeps, lease: Lease): Promise<boolean> {
  const askedAtMs = deps.clock.monotonicMs();
  if (!(await store.renewTerm(deps.db(), lease, deps.ttlSeconds))) return false;
  lease.trustedUntilMs = trustFrom(deps, askedAtMs);
  return isTrusted(deps, lease);
}

/** True while the holder need not ask. */
export function isTrusted(deps: Pick<HoldingDeps, 'clock'>, lease: Lease): boolean {
  return deps.clock.monotonicMs() < lease.trustedUntilMs;
}

/** Gives the term back; a term that follows it is left alone. */
export function resignLease(deps: Pick<HoldingDeps, 'db'>, lease: Lease): Promise<void> {
  return store.releaseTerm(deps.db(), lease);
}

function trustFrom(deps: HoldingDeps, askedAtMs: number): number {
  return askedAtMs + deps.ttlSeconds * 1000 * (1 - marginShare);
}

/** Thrown where another process may have taken over; nothing was written. */
export class LeaseLost extends Error {}

/** A transaction that commits only under the lease's term; throws `LeaseLost`. `prepare` comes before the term is asked for. */
export async function underLease<T>(
  db: Queryable,
  lease: Pick<Lease, 'name' | 'term'>,
  work: (trx: Queryable) => Promise<T>,
  prepare?: (trx: Queryable) => Promise<void>,
): Promise<T> {
  return inTransaction(db, async (trx) => {
    await prepare?.(trx);
    if (!(await store.holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
    return work(trx);
  });
}

/** The same for work that another process will do anyway: null where the lease is lost. */
export async function ifHeld<T>(...given: Parameters<typeof underLease<T>>): Promise<T | null> {
  try {
    return await underLease(...given);
  } catch (error) {
    if (error instanceof LeaseLost) return null;
    throw error;
  }
}

/** What loops work with. */
export interface LoopDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}

export interface LeasedLoopOptions extends LoopDeps {
  name: string;
  intervalMs: number;
  /** How long the lease outlives its holder; one run must renew or end within it. */
  ttlSeconds: number;
  /**
   * One tick. `lease.term` fences its effects; `renew` returns false when the lease has been lost. It throws, or returns why it
   * failed where it has logged that itself.
   */
  run(lease: Lease, renew: () => Promise<boolean>, signal: AbortSignal): Promise<string | null | undefined>;
}

export interface LeasedLoop extends Part {
  /** One tick now, outside the cadence; false when another process holds the lease. For commands and tests. */
  runOnce(): Promise<boolean>;
  /**
   * Ends the present pause, or the next one during a run: what was changed by then is seen. Many calls together are one; a
   * loop that is woken without end runs a few times a second.
   */
  wake(): void;
}

/** Runs of a loop that is woken again and again, within a second. */
const wokenRunsMax = 4;
const wokenMs = 1_000;
/** A run that ends like the one before it is stored at most this often: some loops run every second. */
const notedEveryMs = 30_000;
const errorLengthMax = 300;

/** A loop that any number of replicas may start: at most one runs at a time. An error is logged and the loop goes on. */
export function createLeasedLoop(options: LeasedLoopOptions): LeasedLoop {
  const holder = `${process.pid}-${randomUUID()}`;
  let abort = new AbortController();
  let finished: Promise<void> = Promise.resolve();
  let lastError = '';
  let held: Lease | null = null;
  let nap = new AbortController();
  /** When the last runs began that a wake-up had started. */
  let woken: number[] = [];
  let failure: string | null = null;
  let noted: { term: number; error: string | null; atMs: number } | null = null;

  async function runOnce(): Promise<boolean> {
    const lease = await takeLease(options, options.name, holder);
    if (!lease) return false;
    held = lease;
    failure = (await options.run(lease, () => renewLease(options, lease), abort.signal)) ?? null;
    return true;
  }

  /** Keeps how a run ended, for alerts and pages. Where that can't be stored the next run tries again. */
  async function note(error: string | null): Promise<void> {
    if (held === null) return;
    const { term } = held;
    const atMs = options.clock.monotonicMs();
    if (noted?.term === term && noted.error === error && atMs - noted.atMs < notedEveryMs) return;
    const kept = error?.slice(0, errorLengthMax) ?? null;
    await noteOutcome(options.db(), held, Math.ceil(options.intervalMs / 1000), kept).then(
      () => {
        noted = { term, error, atMs };
      },
      () => {},
    );
  }

  async function loop(): Promise<void> {
    while (!abort.signal.aborted) {
      nap = new AbortController();
      try {
        if (await runOnce()) await note(failure);
        if (lastError) options.reporter.info('loop runs again', { loop: options.name });
        lastError = '';
      } catch (error) {
        const text = describeError(error);
        // The same fault every few seconds is one fact, not a thousand lines.
        if (text !== lastError) options.reporter.error('loop failed', { loop: options.name, error: text });
        lastError = text;
        await note(text);
      }
      await options.clock.wait(options.intervalMs, AbortSignal.any([nap.signal, abort.signal]));
      if (nap.signal.aborted) await holdBack();
    }
  }

  /** After a few wake-ups within a second the next one waits for its end. */
  async function holdBack(): Promise<void> {
    const nowMs = options.clock.monotonicMs();
    woken = [...woken.filter((at) => at > nowMs - wokenMs), nowMs];
    if (woken.length > wokenRunsMax) await options.clock.wait(woken[0]! + wokenMs - nowMs, abort.signal);
  }

  return {
    wake: () => nap.abort(),
    name: `loop ${options.name}`,
    runOnce,
    async start() {
      abort = new AbortController();
      finished = loop();
    },
    async stop() {
      abort.abort();
      await finished;
      // Also after `runOnce` alone: a command must not keep the loop of a running program waiting.
      if (held) await resignLease(options, held).catch(() => {});
    },
  };
}

interface ExpiryLoopOptions extends LoopDeps {
  /** Of the lease; programs that share a database server have different ones. */
  name: string;
  /** Deletes expired rows, at most so many; returns how many. */
  deleteExpired(trx: Queryable, rowsMax: number): Promise<number>;
}

const batchRowsMax = 10_000;

/** Deletes expired rows once an hour, in batches, so that no transaction grows long. */
export function createExpiryLoop({ deleteExpired, ...options }: ExpiryLoopOptions): LeasedLoop {
  return createLeasedLoop({
    intervalMs: 3_600_000,
    ttlSeconds: 120,
    ...options,
    async run(lease, renew, signal) {
      for (let deleted = batchRowsMax; deleted === batchRowsMax && !signal.aborted; ) {
        if (!(await renew())) return;
        deleted = (await ifHeld(options.db(), lease, (trx) => deleteExpired(trx, batchRowsMax))) ?? 0;
      }
    },
  });
}
