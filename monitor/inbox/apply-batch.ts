import { setImmediate } from 'node:timers/promises';
import { decodedBytesMax } from '#contracts/sensor-api/decode-slices.ts';
import type { DecodedUpload, ReadUpload, UploadConsumer } from '#monitor/intake/index.ts';
import type { Lease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { UploadKey } from './decoded-uploads.ts';
import type { InboxParts } from './index.ts';
import { underShare } from './note-failure.ts';
import {
  endAttempt,
  finishUploads,
  lockPending,
  lockUploads,
  type PendingUpload,
  readBodies,
  type StoredBody,
  type UploadIdentity,
} from './store.ts';

/**
 * Applies uploads of one share: every consumer writes its records. All of it, the uploads' end included, is one transaction
 * under the lease's term: it happens wholly or not at all, and only once, because what is no longer pending is left alone.
 *
 * What would take more memory than the largest upload may is left for the next batch. Returns how many were applied.
 */
export async function applyBatch(
  deps: InboxParts,
  share: number,
  batch: readonly PendingUpload[],
  lease: Lease,
): Promise<number> {
  const selected = await selectWhatFits(deps, batch);
  for (const [i, consumer] of deps.consumers.entries()) {
    const records = recordsOf(selected, i);
    if (records.length > 0) await consumer.prepare?.(records);
  }
  await underShare(deps, lease, async (trx) => {
    const ids = selected.map(({ id }) => id);
    const isPending = await lockUploads(trx, ids);
    await applyRecords(
      deps.consumers,
      trx,
      selected.filter(({ id }) => isPending.has(id)),
    );
    await finishUploads(trx, ids, 'applied');
    await endAttempt(trx, share, lease.term);
  });
  deps.decoded.forget(selected.map(({ key }) => key));
  return selected.length;
}

/**
 * Applies one upload at once, without a lease: the lock of its row and its state decide that it is applied once. Does
 * nothing where a worker has applied it meanwhile. Only for consumers that have nothing to prepare.
 */
export async function applyAtOnce(
  deps: InboxParts,
  identity: UploadIdentity,
  { upload, setAside, digest }: ReadUpload,
): Promise<void> {
  const isApplied = await deps
    .db()
    .transaction()
    .execute(async (trx) => {
      const pending = await lockPending(trx, identity);
      if (!pending) return false;
      const { id, siteId, sensorId, nowMs } = pending;
      const arrived = { siteId, sensorId, nowMs, upload, setAside };
      const records = deps.consumers.map((consumer) => consumer.select(arrived));
      await applyRecords(deps.consumers, trx, [{ id, key: pending, records }]);
      await finishUploads(trx, [id], 'applied');
      return true;
    });
  if (isApplied) deps.tally?.('applied', 1);
  deps.decoded.forget([{ ...identity, digest }]);
}

/** The records of an upload, one entry for each consumer in their order; null where it has none for that one. */
interface SelectedUpload {
  id: number;
  key: UploadKey;
  records: readonly unknown[];
}

/** The first uploads of a batch, as many as the memory of the largest allows. Gives way to requests in between. */
async function selectWhatFits(
  { db, consumers, intake, decoded }: InboxParts,
  batch: readonly PendingUpload[],
): Promise<SelectedUpload[]> {
  const found = batch.map((pending) => ({ pending, held: decoded.find(pending) }));
  const missing = found.filter(({ held }) => held === null).map(({ pending }) => pending.id);
  const bodies = missing.length > 0 ? await readBodies(db(), missing) : new Map<number, StoredBody>();
  const selected: SelectedUpload[] = [];
  let bytes = 0;
  for (const { pending, held } of found) {
    const { id, siteId, sensorId, nowMs } = pending;
    let read: DecodedUpload | null = held;
    if (!read) {
      const stored = bodies.get(id);
      // Another worker has ended it meanwhile.
      if (!stored) continue;
      read = await intake.readStored(stored.body, stored.encoding);
      // Many small ones are decoded without a pause of their own.
      await setImmediate();
    }
    bytes += read.decodedBytes;
    if (selected.length > 0 && bytes > decodedBytesMax) break;
    const arrived = { siteId, sensorId, nowMs, upload: read.upload, setAside: read.setAside };
    selected.push({ id, key: pending, records: consumers.map((consumer) => consumer.select(arrived)) });
  }
  return selected;
}

async function applyRecords(
  consumers: readonly UploadConsumer[],
  trx: Queryable,
  selected: readonly SelectedUpload[],
): Promise<void> {
  for (const [i, consumer] of consumers.entries()) {
    const records = recordsOf(selected, i);
    if (records.length > 0) await consumer.apply(trx, records);
  }
}

function recordsOf(selected: readonly SelectedUpload[], consumer: number): unknown[] {
  return selected.map(({ records }) => records[consumer]).filter((records) => records !== null);
}
