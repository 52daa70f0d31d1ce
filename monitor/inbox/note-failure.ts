import { describeError } from '#common/errors/index.ts';
import { type Lease, nameTerm, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { InboxDeps } from './index.ts';
import { countAttempts, endAttempt, type FailedUpload, finishUploads, takeAbandoned } from './store.ts';

/** Unexpected failures before an upload is skipped (NET-6.2). */
export const attemptsMax = 5;
const errorLengthMax = 500;
/** What is known of an attempt whose worker is no more. */
export const abandonedText = 'the worker ended while it applied this upload';

/** Counts a failed attempt at an upload; after the fifth it is skipped. */
export async function noteFailure(
  deps: InboxDeps,
  of: { share: number; id: number },
  lease: Lease,
  error: unknown,
): Promise<void> {
  const text = describeError(error).slice(0, errorLengthMax);
  await underShare(deps, lease, async (trx) => {
    await countFailures(deps, trx, [of.id], text);
    await endAttempt(trx, of.share, lease.term);
  });
}

/**
 * Counts an attempt at what an earlier term left in the middle: its worker was killed, ran out of memory or hung, and one
 * of these uploads may be why. `excused` when this process knows better: the database failed it, and it is still here.
 */
export async function noteAbandoned(deps: InboxDeps, share: number, lease: Lease, isExcused: boolean) {
  await underShare(deps, lease, async (trx) => {
    const ids = await takeAbandoned(trx, share, lease.term);
    if (ids.length > 0 && !isExcused) await countFailures(deps, trx, ids, abandonedText);
  });
}

async function countFailures(deps: InboxDeps, trx: Queryable, ids: readonly number[], error: string) {
  const failed = await countAttempts(trx, ids, error, deps.retrySeconds ?? 1);
  for (const upload of failed) {
    const { sensorId: sensor, spoolId: spool, sequence, attempts: attempt } = upload;
    deps.tally?.(attempt < attemptsMax ? 'failed' : 'rejected', 1);
    const fields = { sensor, spool, sequence, attempt, error };
    if (attempt < attemptsMax) {
      deps.reporter.warn('upload failed', fields);
      continue;
    }
    await skipUpload(deps, trx, upload, error);
    deps.reporter.error('upload rejected', fields);
  }
}

/** An event names what is skipped, and every consumer notes what it means to its records. */
async function skipUpload(deps: InboxDeps, trx: Queryable, upload: FailedUpload, error: string) {
  const { id, siteId, sensorId, spoolId, sequence } = upload;
  await finishUploads(trx, [id], 'rejected');
  for (const consumer of deps.consumers) await consumer.skip?.(trx, upload);
  await deps.events.record(trx, {
    kind: 'telemetry_rejected',
    siteId,
    sensorId,
    details: { sequence, spool_id: spoolId, error },
  });
}

/**
 * A transaction of a share's worker under its lease; throws `LeaseLost`. It names its term, so that a worker that freezes
 * in here does not keep its row locks longer than its lease.
 */
export function underShare(
  deps: Pick<InboxDeps, 'db' | 'leaseSeconds'>,
  lease: Lease,
  work: (trx: Queryable) => Promise<void>,
): Promise<void> {
  return underLease(deps.db(), lease, work, (trx) => nameTerm(trx, lease, deps.leaseSeconds ?? 15));
}
