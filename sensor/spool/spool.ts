/**
 * The spool's operations over one file.
 *
 * Synchronous throughout: each call is one short transaction, and none can interleave with another. A file that fails is
 * opened anew at the next call, and a damaged one is mended.
 */
import { appendCommit } from './append-commit.ts';
import { renumberUploads, restampUpload } from './change-uploads.ts';
import { hasMinute, lastBefore } from './minute-ranges.ts';
import { nextBulkUpload, nextUpload, settleUpload } from './next-upload.ts';
import { openQueue } from './open-queue.ts';
import type { QueueDeps, SpoolQueue } from './queue.ts';
import { salvage } from './salvage.ts';
import { breaksHandle, isDamage, spoolError } from './spool-errors.ts';
import { currentSpoolFile } from './spool-file.ts';
import { createSpoolRoom } from './spool-room.ts';
import type { Spool } from './spooled-upload.ts';
import { withRightClock } from './stamp-runs.ts';
import { acknowledgeUpload, refuseUpload } from './take-answer.ts';

const truncateWalEveryMs = 600_000;

/** `kinds`: the kinds of records that the spool is given; `sensor/records` lists them. */
export type SpoolOptions = Omit<QueueDeps, 'room'>;

/** Makes a spool; nothing is touched before `open`. */
export function createSpool(options: SpoolOptions): Spool {
  const { directory, bytesMax, clock } = options;
  const room = createSpoolRoom(directory, bytesMax);
  const file = new QueueFile({ ...options, room });
  let walTruncatedAtMs = 0;

  function truncateLongLog({ pending, store }: SpoolQueue): void {
    const now = clock.monotonicMs();
    if (pending.uploads > 0 || now - walTruncatedAtMs <= truncateWalEveryMs) return;
    walTruncatedAtMs = now;
    store.truncateWal();
  }

  return {
    open: () => file.use(() => {}),
    close: () => file.close(),
    append: (minutes, gaps, extras) => file.use((queue) => appendCommit(queue, minutes, gaps, extras)),
    oldest: () => file.use(nextUpload),
    oldestOfBulk: () => file.use(nextBulkUpload),
    acknowledge: (upload, receipt) =>
      file.use((queue) => {
        if (acknowledgeUpload(queue, upload, receipt)) truncateLongLog(queue);
      }),
    refuse: (upload) => file.use((queue) => refuseUpload(queue, upload)),
    renumber: (upload) => file.use((queue) => renumberUploads(queue, upload)),
    restamp: (upload, by, nowMs) => file.use((queue) => restampUpload(queue, upload, by, nowMs)),
    settle: (upload) => file.use((queue) => settleUpload(queue, upload)),
    noteRightClock(right) {
      const rightClocks = withRightClock(file.latest.state.rightClocks ?? [], right);
      if (!rightClocks) return;
      file.use((queue) => queue.commit({ ...queue.state, rightClocks }, () => {}));
    },
    lastStampedBy: () => file.latest.state.lastStampedBy ?? null,
    lastCommit: () => file.latest.state.lastCommit ?? null,
    isCovered: (minute) => hasMinute(file.latest.state.covered, minute),
    coveredBefore: (minute) => lastBefore(file.latest.state.covered, minute),
    status() {
      const { state, pending, store } = file.latest;
      return {
        spoolId: state.spoolId,
        pendingUploads: pending.uploads,
        pendingBytes: pending.bytes,
        pendingBytesMax: room.payloadBytesMax,
        lastReceipt: state.lastReceipt,
        roomMinutes: file.isOpen ? room.minutesLeft(store, pending.bytes) : null,
      };
    },
  };
}

/** The spool's file, open or not. */
class QueueFile {
  readonly #deps: QueueDeps;
  #queue: SpoolQueue | null = null;
  #isOpen = false;
  /** The disk has failed a write or a sync since the log was last known to be wholly in the file. */
  #isDoubtful = false;

  constructor(deps: QueueDeps) {
    this.#deps = deps;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The queue as it was last open; its state is that of the latest commit. */
  get latest(): SpoolQueue {
    return this.#queue!;
  }

  /** Runs one step on an open and sound file: reopens it after a disk error, mends it when it turns out damaged. */
  use<T>(step: (queue: SpoolQueue) => T): T {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return step(this.#isOpen ? this.latest : this.#open());
      } catch (error) {
        if (breaksHandle(error)) this.#isDoubtful = true;
        if (breaksHandle(error) || isDamage(error)) this.#release();
        if (!isDamage(error) || attempt > 1) throw spoolError(error, this.#deps.directory);
        this.#mend();
      }
    }
  }

  close(): void {
    if (this.#isOpen) {
      try {
        this.latest.store.truncateWal();
      } catch {
        // The log is replayed at the next start.
      }
    }
    this.#release();
  }

  #open(): SpoolQueue {
    this.#queue = openQueue(this.#deps, this.#isDoubtful);
    this.#isOpen = true;
    this.#isDoubtful = false;
    return this.#queue;
  }

  #release(): void {
    try {
      if (this.#isOpen) this.latest.store.close();
    } catch {
      // A damaged or vanished file may not close cleanly; nothing is lost by that.
    }
    this.#isOpen = false;
  }

  #mend(): void {
    const { directory, reporter } = this.#deps;
    const file = currentSpoolFile(directory);
    reporter.error('the spool is damaged, saving what is intact', { file: file.path });
    const result = salvage({ ...this.#deps, file });
    reporter.warn('a new spool goes on', {
      uploads: result.intactUploads,
      lost_minutes: result.lost.reduce((sum, gap) => sum + (gap.toMinute - gap.fromMinute) / 60 + 1, 0),
    });
  }
}
