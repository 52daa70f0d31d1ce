/**
 * Tells the monitor that a VM is gone, so that its recycled addresses are not blamed on it (NET-2.8).
 *
 * The notice is stored in the transaction that destroys the server and sent until the monitor has acknowledged it,
 * however long that takes; the monitor counts a redelivery as a duplicate. Where no monitor is set up, notices wait.
 */
import { createJobRunner, enqueueJob, type FeatureWork } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type DestroyNoticesDeps, destroyNoticeJobs } from './send-notice.ts';
import * as store from './store.ts';

/** A notice of a killed worker is taken up again after this long. */
const claimSeconds = 30;

export interface NewDestroyNotice {
  clusterId: number;
  serverId: number;
  macAddresses: readonly string[];
}

/** Stores the notice and its job in the caller's transaction; a second one for the same server is the first one. */
export async function enqueueDestroyNotice(tx: Queryable, notice: NewDestroyNotice): Promise<void> {
  const id = await store.insertNotice(tx, notice);
  if (id !== null) await enqueueJob(tx, 'destroy-notices.send', { notice_id: id });
}

/** Notices that the monitor has not acknowledged yet, oldest first. */
export function listPendingNotices(db: Queryable): Promise<store.DestroyNoticeRow[]> {
  return store.listPending(db);
}

/** Sends the notices that are stored; `monitor` is null where none is set up. */
export function createDestroyNotices(
  deps: Omit<DestroyNoticesDeps, 'monitor'> & { monitor: DestroyNoticesDeps['monitor'] | null },
): { work: FeatureWork } {
  const { monitor } = deps;
  if (monitor === null) return { work: {} };
  // A worker of their own: a monitor that doesn't answer must not keep servers waiting.
  const worker = createJobRunner({
    ...deps,
    claimSeconds,
    handlers: destroyNoticeJobs({ ...deps, monitor }),
  });
  return { work: { parts: [worker] } };
}
