/**
 * The loop that applies uploads. Sensors are divided into shares; a worker takes the lease of a share when there is
 * work in it, and keeps it while it works, so an idle inbox writes nothing. Uploads of a share are applied in the order
 * they came; one that fails waits its turn again and lets the others pass.
 */
import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import { ConsumerAway } from '#monitor/intake/index.ts';
import {
  cutPastHolder,
  isTrusted,
  type Lease,
  LeaseLost,
  renewLease,
  resignLease,
  takeLease,
} from '#service-kit/leases/index.ts';
import { isConnectionFailure } from '#service-kit/postgres/index.ts';
import { applyBatch } from './apply-batch.ts';
import type { InboxParts } from './index.ts';
import { noteAbandoned, noteFailure } from './note-failure.ts';
import { batchMax, beginBatch, findDueShares, type PendingUpload, type Pick, pruneUploads } from './store.ts';

const pollMs = 1_000;
const pruneMs = 3_600_000;

export function createInboxWorker(deps: InboxParts) {
  const holder = `${process.pid}-${randomUUID()}`;
  const workers = Array.from({ length: shares }, (_, share) => createShareWorker(deps, share, holder));
  let stopping = new AbortController();
  let nap = new AbortController();
  let finished: Promise<void> = Promise.resolve();
  let lastError = '';
  let followingUp: Promise<void> | null = null;

  async function tick(gatherMs: number): Promise<number> {
    const due = await findDueShares(deps.db(), shares, gatherMs);
    const counts = await Promise.allSettled(
      due.map((share) => workers[share]!.work(stopping.signal, gatherMs > 0)),
    );
    const failed = counts.find((outcome) => outcome.status === 'rejected');
    if (failed) throw failed.reason;
    return counts.reduce((sum, outcome) => sum + (outcome.status === 'fulfilled' ? outcome.value : 0), 0);
  }

  /** Beside the uploads, never in their way: what consumers do here may wait for another process, and that one may hang. */
  function followUp(): Promise<void> {
    followingUp ??= Promise.all(
      deps.consumers.map(async (consumer) => {
        try {
          await consumer.followUp?.();
        } catch (error) {
          const fields = { kind: consumer.kind, error: describeError(error) };
          deps.reporter.warn('work after uploads failed', fields);
        }
      }),
    ).then(() => {
      followingUp = null;
    });
    return followingUp;
  }

  async function loop(): Promise<void> {
    let prunedAtMs = Number.NEGATIVE_INFINITY;
    while (!stopping.signal.aborted) {
      nap = new AbortController();
      let applied = 0;
      try {
        applied = await tick(deps.gatherMs ?? 0);
        void followUp();
        if (deps.clock.monotonicMs() - prunedAtMs > pruneMs) {
          await pruneUploads(deps.db());
          prunedAtMs = deps.clock.monotonicMs();
        }
        if (lastError) deps.reporter.info('inbox works again');
        lastError = '';
      } catch (error) {
        const text = describeError(error);
        if (text !== lastError) deps.reporter.error('inbox failed', { error: text });
        lastError = text;
      }
      if (applied === 0) await deps.clock.wait(pollMs, AbortSignal.any([nap.signal, stopping.signal]));
    }
    await followingUp;
    await Promise.all(workers.map((worker) => worker.resign()));
  }

  return {
    name: 'inbox worker',
    wake: () => nap.abort(),
    async drain() {
      while ((await tick(0)) > 0);
      await followingUp;
      for (const consumer of deps.consumers) await consumer.followUp?.();
    },
    async start() {
      stopping = new AbortController();
      finished = loop();
    },
    async stop() {
      stopping.abort();
      await finished;
    },
  };
}

/** Sensors are divided into so many shares. */
const shares = 4;
/** Compressed bytes of one transaction. */
const bytesMax = 4 * 1024 * 1024;
/** Uploads of one round that are applied alone: a killed worker's batch is caught up in one go. */
const aloneMax = 16;
/** Batches of a share in one go; then sites' minutes are brought up to date, so that a backlog does not hide them. */
const roundsMax = 4;

/**
 * Before a batch is applied it is noted as begun, in a commit of its own; the transaction that applies it clears the
 * note. A batch that fails is applied again one by one, and what failed before is applied alone, so that an upload that
 * can't be applied costs only itself, whether it throws or takes the process with it.
 */
function createShareWorker(deps: InboxParts, share: number, holder: string) {
  const own = createShareLease(deps, share, holder);

  async function runPick(pick: Pick): Promise<number> {
    const held = await own.hold();
    if (!held) return 0;
    const place = { share, shares, leaseName: held.name, term: held.term };
    const batch = await beginBatch(deps.db(), place, pick);
    // The database knows better than our own clock whether the term is over.
    if (batch === null) throw new LeaseLost();
    if (batch.length === 0) return 0;
    try {
      const applied = await applyBatch(deps, share, batch, held);
      deps.tally?.('applied', applied);
    } catch (error) {
      await settle(error, batch, held);
    }
    return batch.length;
  }

  /** After a batch that failed: again one by one, or one attempt more for the only one. */
  async function settle(error: unknown, batch: readonly PendingUpload[], held: Lease): Promise<void> {
    if (error instanceof LeaseLost) throw error;
    // The database's own trouble says nothing about the upload. Whether a commit in doubt took place is read again.
    if (isConnectionFailure(error)) throw error;
    if (isRetryable(error)) return;
    // A part of the batch may be done before the time of its transaction is over, where all of it is not.
    if (error instanceof ConsumerAway && batch.length === 1) throw error;
    if (batch.length > 1) {
      for (const { id } of batch) await runPick({ id });
      return;
    }
    await noteFailure(deps, { share, id: batch[0]!.id }, held, error);
  }

  async function runAlone(signal: AbortSignal): Promise<number> {
    let applied = 0;
    while (applied < aloneMax && !signal.aborted && (await runPick({ kind: 'failed' })) > 0) applied += 1;
    return applied;
  }

  /** Some rounds; the lease may end in any of them, and is asked for again in the next. */
  async function runRounds(signal: AbortSignal, gathers: boolean): Promise<number> {
    let applied = 0;
    for (let round = 0; round < roundsMax && !signal.aborted; round += 1) {
      try {
        const fresh = await runPick({ kind: 'fresh', uploadsMax: batchMax, bytesMax });
        const failed = await runAlone(signal);
        applied += fresh + failed;
        if (fresh + failed === 0 || gathers) break;
      } catch (error) {
        if (!(error instanceof LeaseLost)) throw error;
        own.lose();
      }
    }
    return applied;
  }

  return {
    /**
     * Some batches; returns how many uploads they held, 0 also when another process holds the share. `gathers`: one, since what is
     * left after it may wait for more.
     */
    async work(signal: AbortSignal, gathers: boolean): Promise<number> {
      try {
        return await runRounds(signal, gathers);
      } catch (error) {
        own.excuse();
        throw error;
      }
    },
    /** Gives the lease back. */
    resign: own.resign,
  };
}

/** Serialisation failures and deadlocks: the transaction did nothing and may be tried again as it is. */
function isRetryable(error: unknown): boolean {
  return /^40/.test(String((error as { code?: unknown } | null)?.code ?? ''));
}

// The lease of one share's worker, and what its earlier terms left unfinished.

function createShareLease(deps: InboxParts, share: number, holder: string) {
  const name = `inbox ${share}`;
  const holding = { db: deps.db, clock: deps.clock, ttlSeconds: deps.leaseSeconds ?? 15 };
  let lease: Lease | null = null;
  let excusedTerm: number | null = null;
  return {
    /** A lease with at least half of its time left; null while another process holds the share. */
    async hold(): Promise<Lease | null> {
      if (lease && isTrusted(holding, lease)) {
        const half = (holding.ttlSeconds * 1000) / 2;
        if (lease.trustedUntilMs - deps.clock.monotonicMs() > half) return lease;
        if (await renewLease(holding, lease)) return lease;
      }
      const before = lease;
      lease = null;
      const taken = await takeLease(holding, name, holder);
      if (!taken) {
        await cutPastHolder(deps.db(), name, holding.ttlSeconds);
        return null;
      }
      // The same term as before: no other worker had it in between; the worker repeats unfinished work by itself.
      if (taken.term !== before?.term) {
        const isExcused = excusedTerm !== null && taken.term === excusedTerm + 1;
        await noteAbandoned(deps, share, taken, isExcused);
      }
      lease = taken;
      excusedTerm = null;
      return lease;
    },
    /** The lease was lost; `hold` takes it again. */
    lose() {
      lease = null;
    },
    /** The present term ended by a failure of the database; its unfinished uploads count no attempt. */
    excuse() {
      excusedTerm = lease?.term ?? excusedTerm;
    },
    /** Gives the lease back. */
    async resign() {
      if (lease) await resignLease(holding, lease).catch(() => {});
      lease = null;
    },
  };
}
