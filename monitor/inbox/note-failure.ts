import { describeError } from '#common/errors/index.ts';
import { holdsTerm, type Lease } from '#service-kit/leases/index.ts';
import { LeaseLost } from './apply-upload.ts';
import type { InboxDeps } from './index.ts';
import { countAttempt, finishUpload, type PendingUpload } from './store.ts';

/** Unexpected failures before an upload is skipped (NET-6). */
export const attemptsMax = 5;
const errorLengthMax = 500;

/**
 * Counts a failed attempt; after the fifth the upload is skipped: an event names it, and its minutes become a gap, so
 * that nobody takes them for quiet.
 */
export async function noteFailure(
  deps: InboxDeps,
  pending: PendingUpload,
  lease: Lease,
  error: unknown,
): Promise<void> {
  const text = describeError(error).slice(0, errorLengthMax);
  const { siteId, sensorId, spoolId, sequence } = pending;
  await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
      const attempts = await countAttempt(trx, pending.id, text, deps.retrySeconds ?? 1);
      const fields = { sensor: sensorId, spool: spoolId, sequence, attempt: attempts, error: text };
      if (attempts < attemptsMax) {
        deps.reporter.warn('upload failed', fields);
        return;
      }
      await finishUpload(trx, pending.id, 'rejected');
      if (pending.firstMinute !== null && pending.lastMinute !== null) {
        const { firstMinute: fromMinute, lastMinute: toMinute } = pending;
        const gaps = [{ capture: '', fromMinute, toMinute, reason: 'rejected' as const }];
        await deps.facts.append(trx, [{ origin: { siteId, sensorId }, minutes: [], gaps }]);
      }
      await deps.events.record(trx, {
        kind: 'telemetry_rejected',
        siteId,
        sensorId,
        details: { sequence, spool_id: spoolId, error: text },
      });
      deps.reporter.error('upload rejected', fields);
    });
}
