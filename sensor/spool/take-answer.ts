/** Stores what the monitor answered to an upload. */
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { deliveredState } from './appended-state.ts';
import { addRange } from './minute-ranges.ts';
import type { SpoolQueue } from './queue.ts';
import type { PendingUpload } from './spooled-upload.ts';
import { coversOrGap, minutesOf } from './upload-row.ts';

/** Deletes the upload and stores its receipt. False when that happened already. */
export function acknowledgeUpload(
  queue: SpoolQueue,
  upload: PendingUpload,
  receipt: 'accepted' | 'duplicate',
): boolean {
  const { state, store } = queue;
  const row = queue.rowOf(upload);
  if (!row) return false;
  const delivered = minutesOf(row).reduce((all, minute) => addRange(all, minute, minute), state.delivered!);
  const isFirst = store.firstUpload()?.position === row.position;
  const next = deliveredState(state, row.position, isFirst);
  queue.putInPlace(row.position, null, {
    ...next,
    lastReceipt: queue.receiptFor(row, receipt),
    delivered,
  });
  return true;
}

/** Puts the gaps that its records are lost as in the place of a refused upload, and returns them. */
export function refuseUpload(queue: SpoolQueue, upload: PendingUpload): TelemetryGap[] {
  const row = queue.rowOf(upload);
  if (!row) return [];
  const gaps = row.kind === 'gaps' ? [] : coversOrGap(row);
  if (gaps.length > 0) {
    queue.replaceByGaps(row.position, gaps);
    return gaps;
  }
  // A gap that the monitor refuses has nothing to stand in for it, nor has what is lost without a gap.
  const lastReceipt = queue.receiptFor(row, 'refused');
  queue.putInPlace(row.position, null, { ...queue.state, lastReceipt });
  return [];
}
