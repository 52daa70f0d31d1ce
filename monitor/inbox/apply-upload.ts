import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { holdsTerm, type Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { InboxDeps } from './index.ts';
import { finishUpload, limitIdling, lockUpload, type PendingUpload } from './store.ts';

/** Thrown where another worker has taken over; nothing was written. */
export class LeaseLost extends Error {}

/**
 * Turns an upload into facts. Everything, the upload's end included, is one transaction under the lease's term: it
 * happens wholly or not at all, and only once, because an upload that is no longer pending is left alone.
 */
export async function applyUpload(deps: InboxDeps, pending: PendingUpload, lease: Lease): Promise<void> {
  const upload = decodeUpload(decompressUpload(pending.body, pending.encoding));
  const minutes = upload.minutes.map((minute) => minute.minute);
  const nowMs = pending.nowMs;
  await deps.traffic.prepare(minutes);
  await deps.applications.prepare(minutes, nowMs);
  const probes = (await deps.probes?.prepare(upload.probes ?? [], nowMs)) ?? [];
  await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      // A worker that freezes in here must not keep its row locks longer than its lease.
      await limitIdling(trx, deps.leaseSeconds ?? 15);
      if (!(await holdsTerm(trx, lease.name, lease.term))) throw new LeaseLost();
      if (!(await lockUpload(trx, pending.id))) return;
      await addFacts(deps, trx, pending, upload);
      await deps.probes?.addResults(trx, pending, probes);
      await finishUpload(trx, pending.id, 'applied');
    });
}

async function addFacts(
  deps: InboxDeps,
  trx: Queryable,
  pending: PendingUpload,
  upload: TelemetryUpload,
): Promise<void> {
  const { siteId, sensorId, nowMs } = pending;
  const captures = await deps.traffic.addMinutes(trx, { siteId, sensorId }, upload.minutes);
  await deps.applications.addMinutes(trx, siteId, captures, upload.minutes, nowMs);
  await deps.traffic.addGaps(trx, { siteId, sensorId }, upload.gaps);
  const { inventory } = upload;
  if (inventory && deps.onInventory && upload.minutes.length > 0) {
    const newest = Math.max(...upload.minutes.map((minute) => minute.minute));
    await deps.onInventory(trx, { siteId, sensorId }, inventory, newest);
  }
  if (deps.onMinute) for (const minute of upload.minutes) await deps.onMinute(trx, siteId, minute);
}
