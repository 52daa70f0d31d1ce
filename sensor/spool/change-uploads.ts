/** Gives uploads another identity or other times. */
import { randomUUID } from 'node:crypto';
import type { ClockStamp } from '#sensor/host-time/index.ts';
import { coveredAfterMove, upTo } from './minute-ranges.ts';
import type { SpoolQueue } from './queue.ts';
import { findShift, type Stamped } from './restamp.ts';
import type { SpoolState } from './spool-state.ts';
import type { PendingUpload } from './spooled-upload.ts';
import { isSameClock, stampOne } from './stamp-runs.ts';
import type { UploadRow } from './store.ts';
import { coversOf, lastMinuteOf, payloadIsIntact, renumberedRow, restampedRow } from './upload-row.ts';

/** Gives the upload, and those of its spool behind it, the numbers of a new spool. */
export function renumberUploads(queue: SpoolQueue, upload: PendingUpload): void {
  const next: SpoolState = { ...queue.state, spoolId: randomUUID(), nextSequence: 1 };
  const renumbered: UploadRow[] = [];
  let row = queue.rowOf(upload);
  while (row) {
    if (row.spoolId === upload.spoolId && payloadIsIntact(row)) {
      const { position, madeAtMs } = row;
      const identity = { position, madeAtMs, sequence: next.nextSequence, spoolId: next.spoolId };
      renumbered.push(renumberedRow(queue.deps, row, identity));
      next.nextSequence += 1;
    }
    row = queue.store.uploadAfter(row.position);
  }
  queue.commit(next, (store) => {
    for (const one of renumbered) store.replaceUpload(one);
  });
}

/** Stamps an upload again by the clock of now, under a new number. False: its times stay as they are. */
export function restampUpload(
  queue: SpoolQueue,
  upload: PendingUpload,
  by: ClockStamp,
  nowMs: number,
): boolean {
  const { deps, state } = queue;
  const row = queue.rowOf(upload);
  if (!row) return false;
  const stamped = stampOf(queue, row);
  const shift = stamped && findShift(stamped, by, nowMs, state.rightClocks ?? []);
  if (!shift) return false;
  const { position, spoolId, madeAtMs } = row;
  const identity = { position, spoolId, madeAtMs, sequence: state.nextSequence };
  const again = restampedRow(deps, row, identity, { shift, nowMs });
  const thisMinute = Math.floor(nowMs / 60_000) * 60;
  const moved = again && coversOf(again);
  queue.putInPlace(position, again, {
    ...state,
    nextSequence: state.nextSequence + 1,
    covered: coveredAfterMove(upTo(state.covered, thisMinute), coversOf(row) ?? [], moved ?? []),
    stamps: stampOne(state.stamps ?? [], position, { ...by, since: shift.since + shift.seconds }),
  });
  return true;
}

/** What there is to know of an upload's times; null where even that is damaged. */
function stampOf(queue: SpoolQueue, row: UploadRow): Stamped | null {
  const covers = coversOf(row);
  if (!covers) return null;
  const by = queue.stampAt(row.position);
  const lastMinute = lastMinuteOf(row);
  // Looked for only where it counts: of an upload that another boot stamped.
  const newestOfClock = () =>
    queue.store.outlines().reduce((newest, one) => {
      const isSame = isSameClock(queue.stampAt(one.position), by);
      return isSame && one.kind === 'minutes' ? Math.max(newest, lastMinuteOf(one)) : newest;
    }, lastMinute);
  return { by, lastMinute, hasMinutes: row.kind === 'minutes', newestOfClock };
}
