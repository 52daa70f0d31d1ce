import { ConsumerAway } from '#monitor/intake/index.ts';
import { type Lease, LeaseLost } from '#service-kit/leases/index.ts';
import { isConnectionFailure } from '#service-kit/postgres/index.ts';
import { applyBatch } from './apply-batch.ts';
import type { InboxParts } from './index.ts';
import { noteFailure } from './note-failure.ts';
import { createShareLease } from './share-lease.ts';
import { batchMax, beginBatch, type PendingUpload, type Pick } from './store.ts';

/** Sensors are divided into so many shares. */
export const shares = 4;
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
export function createShareWorker(deps: InboxParts, share: number, holder: string) {
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
