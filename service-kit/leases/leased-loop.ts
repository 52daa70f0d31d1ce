import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { ifHeld, type Lease, renewLease, resignLease, takeLease } from './hold-lease.ts';
import { noteOutcome } from './store.ts';

export interface LeasedLoopOptions {
  name: string;
  intervalMs: number;
  /** How long the lease outlives its holder; one run must renew or end within it. */
  ttlSeconds: number;
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
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

interface ExpiryLoopOptions {
  /** Of the lease; programs that share a database server have different ones. */
  name: string;
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
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
