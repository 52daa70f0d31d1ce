/** Finds the upload to send next, and prepares it. */
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import type { SpoolQueue } from './queue.ts';
import type { PendingUpload } from './spooled-upload.ts';
import type { UploadRow } from './store.ts';
import { coversOrGap, payloadIsIntact, settledRow } from './upload-row.ts';

/** The first urgent upload, else the first of all, or null. Damaged ones before it become gaps. */
export function nextUpload(queue: SpoolQueue): PendingUpload | null {
  for (;;) {
    const { firstUrgent } = queue.pending;
    const row = firstUrgent === null ? queue.store.firstUpload() : queue.store.uploadAt(firstUrgent);
    if (!row) return null;
    if (payloadIsIntact(row)) return queue.toPending(row);
    dropDamaged(queue, row);
  }
}

/** The first upload that is not urgent, or null. */
export function nextBulkUpload(queue: SpoolQueue): PendingUpload | null {
  for (;;) {
    const row = queue.firstOfBulk();
    if (!row) return null;
    if (payloadIsIntact(row)) return queue.toPending(row);
    dropDamaged(queue, row);
  }
}

/** A damaged record goes; its gap takes its place. */
function dropDamaged(queue: SpoolQueue, row: UploadRow): void {
  const gaps = coversOrGap(row).map(
    (gap): TelemetryGap => (gap.reason === 'refused' ? { ...gap, reason: 'spool_damaged' } : gap),
  );
  queue.deps.reporter.error('a spooled upload is damaged and becomes a gap', {
    sequence: row.sequence,
    gaps: gaps.length,
  });
  if (gaps.length > 0) queue.replaceByGaps(row.position, gaps);
  else queue.putInPlace(row.position, null);
}

/** Settles an upload against those that were delivered. True: it was changed. */
export function settleUpload(queue: SpoolQueue, upload: PendingUpload): boolean {
  const { deps, state } = queue;
  const row = queue.rowOf(upload);
  const isPart = (state.parts ?? []).includes(upload.position);
  const settled = row && settledRow(deps, row, { delivered: state.delivered!, isPart });
  if (!settled) return false;
  queue.putInPlace(upload.position, settled.row);
  return true;
}
