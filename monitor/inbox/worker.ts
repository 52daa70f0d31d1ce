/**
 * The loop that applies uploads. Sensors are divided into shares; a worker takes the lease of a share when there is
 * work in it, and keeps it while it works, so an idle inbox writes nothing. Uploads of a share are applied in the order
 * they came; one that fails waits its turn again and lets the others pass.
 */
import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { type Lease, releaseLease, takeLease } from '#service-kit/leases/index.ts';
import { isConnectionFailure } from '#service-kit/postgres/index.ts';
import { applyUpload, LeaseLost } from './apply-upload.ts';
import type { InboxDeps } from './index.ts';
import { noteFailure } from './note-failure.ts';
import { findDueShares, findNext, pruneUploads } from './store.ts';

const shares = 4;
const pollMs = 1_000;
/** Uploads of a share in one go; then sites' minutes are brought up to date, so that a backlog does not hide them. */
const batchMax = 50;
const pruneMs = 3_600_000;

export interface InboxWorker extends Part {
  wake(): void;
  drain(): Promise<void>;
}

export function createInboxWorker(deps: InboxDeps): InboxWorker {
  const holder = `${process.pid}-${randomUUID()}`;
  const ttlSeconds = deps.leaseSeconds ?? 15;
  let stopping = new AbortController();
  let nap = new AbortController();
  let finished: Promise<void> = Promise.resolve();
  let lastError = '';

  async function applyShare(share: number): Promise<number> {
    const name = `inbox ${share}`;
    let applied = 0;
    while (!stopping.signal.aborted && applied < batchMax) {
      const term = await takeLease(deps.db(), name, holder, ttlSeconds);
      if (term === null) return applied;
      const next = await findNext(deps.db(), share, shares);
      if (!next) return applied;
      await applyOne(next, { name, holder, term });
      applied += 1;
    }
    return applied;
  }

  async function applyOne(next: Parameters<typeof applyUpload>[1], lease: Lease): Promise<void> {
    try {
      await applyUpload(deps, next, lease);
    } catch (error) {
      if (error instanceof LeaseLost) return;
      // The database's own trouble says nothing about the upload. Whether a commit in doubt took place is read again.
      if (isConnectionFailure(error) || isRetryable(error)) throw error;
      await noteFailure(deps, next, lease, error).catch((failure: unknown) => {
        if (!(failure instanceof LeaseLost)) throw failure;
      });
    }
  }

  async function tick(): Promise<number> {
    const due = await findDueShares(deps.db(), shares);
    const counts = await Promise.allSettled(due.map(applyShare));
    // Marks may be left from a worker that died between its facts and its roll-up, so this does not ask for work of ours.
    await deps.facts.rollUp();
    const failed = counts.find((outcome) => outcome.status === 'rejected');
    if (failed) throw failed.reason;
    return counts.reduce((sum, outcome) => sum + (outcome.status === 'fulfilled' ? outcome.value : 0), 0);
  }

  async function loop(): Promise<void> {
    let prunedAtMs = Number.NEGATIVE_INFINITY;
    while (!stopping.signal.aborted) {
      nap = new AbortController();
      let applied = 0;
      try {
        applied = await tick();
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
    for (let share = 0; share < shares; share += 1) {
      await releaseLease(deps.db(), `inbox ${share}`, holder).catch(() => {});
    }
  }

  return {
    name: 'inbox worker',
    wake: () => nap.abort(),
    async drain() {
      while ((await tick()) > 0);
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

/** Serialisation failures and deadlocks: the transaction did nothing and may be tried again as it is. */
function isRetryable(error: unknown): boolean {
  return /^40/.test(String((error as { code?: unknown } | null)?.code ?? ''));
}
