/**
 * Tells the monitor that a VM is gone, so that its recycled addresses are not blamed on it (NET-2.8).
 *
 * The notice is stored in the transaction that destroys the server and sent until the monitor has acknowledged it,
 * however long that takes; the monitor counts a redelivery as a duplicate. Where no monitor is set up, notices wait.
 */
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export { type DestroyNoticesDeps, destroyNoticeJobs } from './send-notice.ts';
export type { DestroyNoticeRow } from './store.ts';

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
