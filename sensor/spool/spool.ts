/**
 * The spool's operations over one file.
 *
 * Synchronous throughout: each call is one short transaction, and none can interleave with another. The state is
 * kept in memory too, and replaced only after the commit, so a failed transaction changes nothing.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import { addRange, hasMinute, lastBefore } from './minute-ranges.ts';
import { salvage } from './salvage.ts';
import { breaksHandle, isDamage, spoolError } from './spool-errors.ts';
import { currentSpoolFile, makeDurableFile, readStateCopy, writeStateCopy } from './spool-file.ts';
import { createSpoolRoom } from './spool-room.ts';
import { type SpoolState, spoolFormat, toStored } from './spool-state.ts';
import type { PendingUpload, Receipt, Spool } from './spooled-upload.ts';
import { openSpoolStore, type SpoolStore, type UploadRow } from './store.ts';
import { coversOf, gapRow, payloadIsIntact, renumberedRow, uploadRows } from './upload-row.ts';

const truncateWalEveryMs = 600_000;

export interface SpoolOptions {
  directory: string;
  /** The file's size limit. */
  bytesMax: number;
  sensorVersion: string;
  clock: Clock;
  reporter: Reporter;
}

/** Makes a spool; nothing is touched before `open`. */
export function createSpool(options: SpoolOptions): Spool {
  const { directory, clock, reporter } = options;
  let store: SpoolStore | null = null;
  let state: SpoolState;
  let pending = { uploads: 0, bytes: 0 };
  let lastPosition = 0;
  let positionAtOpen = 0;
  let walTruncatedAtMs = 0;
  /** The disk has failed a write or a sync since the log was last known to be wholly in the file. */
  let isDoubtful = false;
  const room = createSpoolRoom(directory, options.bytesMax);

  /** Runs one step on an open and sound file: reopens it after a disk error, mends it when it turns out damaged. */
  function withStore<T>(step: (store: SpoolStore) => T): T {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return step(store ?? openStore());
      } catch (error) {
        if (breaksHandle(error)) isDoubtful = true;
        if (breaksHandle(error) || isDamage(error)) closeStore();
        if (!isDamage(error) || attempt > 1) throw spoolError(error, directory);
        mend();
      }
    }
  }

  function openStore(): SpoolStore {
    const { path } = currentSpoolFile(directory);
    makeDurableFile(path, directory);
    const opened = openSpoolStore(path, options.bytesMax);
    try {
      if (opened.isEmpty()) {
        // A spool that was begun has left its state beside it: this one was emptied or removed.
        if (readStateCopy(directory))
          throw new CodedError('spool.damaged', `The spool in ${directory} is empty.`);
        const spoolId = randomUUID();
        opened.create({ format: spoolFormat, spoolId, nextSequence: 1, covered: [], lastReceipt: null });
      }
      if (!opened.isSound()) throw new CodedError('spool.damaged', `The spool in ${directory} is damaged.`);
      const read = opened.readState();
      if (!read) throw new CodedError('spool.damaged', `The spool in ${directory} has lost its state.`);
      if (read.format > spoolFormat) {
        throw new CodedError(
          'spool.newer',
          `The spool in ${directory} was made by a newer sensor. Install that one.`,
        );
      }
      // After a failed sync the kernel may show bytes that no disk holds, and call the next sync of them good. Written
      // into the other file and synced there, they are durable whatever became of the log.
      if (isDoubtful) opened.truncateWal();
      isDoubtful = false;
      state = read;
      pending = opened.totals();
      room.learn(opened.payloadBytesPerMinute());
      lastPosition = opened.lastPosition();
      if (store === null) positionAtOpen = lastPosition;
      store = opened;
      return opened;
    } catch (error) {
      opened.close();
      throw error;
    }
  }

  function closeStore(): void {
    try {
      store?.close();
    } catch {
      // A damaged or vanished file may not close cleanly; nothing is lost by that.
    }
    store = null;
  }

  function mend(): void {
    const file = currentSpoolFile(directory);
    reporter.error('the spool is damaged, saving what is intact', { file: file.path });
    const { bytesMax, sensorVersion } = options;
    const result = salvage({ directory, file, bytesMax, clock, sensorVersion });
    reporter.warn('a new spool goes on', {
      uploads: result.intactUploads,
      lost_minutes: result.lost.reduce((sum, gap) => sum + (gap.toMinute - gap.fromMinute) / 60 + 1, 0),
    });
  }

  /** Commits a change of the queue together with the state that follows it. */
  function commit(store: SpoolStore, next: SpoolState, change: () => void): void {
    store.transaction(() => {
      change();
      store.writeState(next);
    });
    state = next;
    pending = store.totals();
    writeStateCopy(directory, toStored(next));
  }

  /** A damaged record goes; its gap takes its place. Returns the row that is first now. */
  function dropDamaged(store: SpoolStore, row: UploadRow): void {
    const gaps = (coversOf(row) ?? [gapAround(row.madeAtMs)]).map(
      (gap): TelemetryGap => (gap.reason === 'refused' ? { ...gap, reason: 'spool_damaged' } : gap),
    );
    reporter.error('a spooled upload is damaged and becomes a gap', {
      sequence: row.sequence,
      gaps: gaps.length,
    });
    replaceByGaps(store, row.position, gaps);
  }

  function replaceByGaps(store: SpoolStore, position: number, gaps: TelemetryGap[]): void {
    const { spoolId, nextSequence } = state;
    const identity = { position, spoolId, sequence: nextSequence, madeAtMs: clock.nowMs() };
    commit(store, { ...state, nextSequence: nextSequence + 1 }, () => {
      store.replaceUpload(gapRow(identity, gaps, options.sensorVersion));
    });
  }

  const toPending = (row: UploadRow): PendingUpload => ({
    position: row.position,
    spoolId: row.spoolId,
    sequence: row.sequence,
    madeAtMs: row.madeAtMs,
    body: row.payload,
    isNew: row.position > positionAtOpen,
  });

  /** The row of this upload, or null when it has been settled already. */
  function rowOf(store: SpoolStore, upload: PendingUpload): UploadRow | null {
    const row = store.uploadAt(upload.position);
    return row && row.spoolId === upload.spoolId && row.sequence === upload.sequence ? row : null;
  }

  function receiptFor(row: UploadRow, receipt: Receipt['receipt']): Receipt {
    const throughMinute = Math.max(
      state.lastReceipt?.throughMinute ?? 0,
      ...(coversOf(row) ?? []).map((gap) => gap.toMinute),
    );
    return { spoolId: row.spoolId, sequence: row.sequence, receipt, atMs: clock.nowMs(), throughMinute };
  }

  return {
    open() {
      withStore(() => {});
    },

    close() {
      if (store) {
        try {
          store.truncateWal();
        } catch {
          // The log is replayed at the next start.
        }
      }
      closeStore();
    },

    append(minutes, gaps, extras) {
      withStore((store) => {
        // A commit whose sync failed may have happened all the same: then the caller comes with it once more.
        const fresh = minutes.filter(({ minute }) => !hasMinute(state.covered, minute));
        const isKnown = minutes.length > 0 && fresh.length === 0;
        if (isKnown && !extras?.probes?.length) return;
        const freshGaps = isKnown ? [] : gaps;
        const { spoolId } = state;
        const first = { position: lastPosition + 1, spoolId, sequence: state.nextSequence };
        const identity = { ...first, madeAtMs: clock.nowMs() };
        const rows = uploadRows(identity, fresh, freshGaps, options.sensorVersion, extras);
        const payloadBytes = rows.reduce((sum, row) => sum + row.payload.length, 0);
        if (fresh.length > 0) room.require(store, pending.bytes, payloadBytes);
        let covered = state.covered;
        for (const { minute } of fresh) covered = addRange(covered, minute, minute);
        for (const { fromMinute, toMinute } of freshGaps) covered = addRange(covered, fromMinute, toMinute);
        commit(store, { ...state, nextSequence: first.sequence + rows.length, covered }, () => {
          for (const row of rows) store.insertUpload(row);
        });
        lastPosition += rows.length;
        if (fresh.length > 0) room.note(payloadBytes);
      });
    },

    oldest() {
      return withStore((store) => {
        for (;;) {
          const row = store.firstUpload();
          if (!row) return null;
          if (payloadIsIntact(row)) return toPending(row);
          dropDamaged(store, row);
        }
      });
    },

    acknowledge(upload, receipt) {
      withStore((store) => {
        const row = rowOf(store, upload);
        if (!row) return;
        commit(store, { ...state, lastReceipt: receiptFor(row, receipt) }, () =>
          store.deleteUpload(row.position),
        );
        const now = clock.monotonicMs();
        if (pending.uploads === 0 && now - walTruncatedAtMs > truncateWalEveryMs) {
          walTruncatedAtMs = now;
          store.truncateWal();
        }
      });
    },

    refuse(upload) {
      return withStore((store) => {
        const row = rowOf(store, upload);
        if (!row) return [];
        if (row.kind === 'minutes') {
          const gaps = coversOf(row) ?? [gapAround(row.madeAtMs)];
          replaceByGaps(store, row.position, gaps);
          return gaps;
        }
        // A gap record that the monitor refuses has nothing to stand in for it.
        commit(store, { ...state, lastReceipt: receiptFor(row, 'refused') }, () =>
          store.deleteUpload(row.position),
        );
        return [];
      });
    },

    renumber(upload) {
      withStore((store) => {
        const next: SpoolState = { ...state, spoolId: randomUUID(), nextSequence: 1 };
        const renumbered: UploadRow[] = [];
        let row = rowOf(store, upload);
        while (row) {
          if (row.spoolId === upload.spoolId && payloadIsIntact(row)) {
            const { position, madeAtMs } = row;
            const sequence = next.nextSequence;
            renumbered.push(renumberedRow(row, { position, madeAtMs, sequence, spoolId: next.spoolId }));
            next.nextSequence += 1;
          }
          row = store.uploadAfter(row.position);
        }
        commit(store, next, () => {
          for (const one of renumbered) store.replaceUpload(one);
        });
      });
    },

    isCovered: (minute) => hasMinute(state.covered, minute),
    coveredBefore: (minute) => lastBefore(state.covered, minute),
    status: () => ({
      spoolId: state.spoolId,
      pendingUploads: pending.uploads,
      pendingBytes: pending.bytes,
      pendingBytesMax: room.payloadBytesMax,
      lastReceipt: state.lastReceipt,
      roomMinutes: store ? room.minutesLeft(store, pending.bytes) : null,
    }),
  };
}

/** Where not even the gap of a record can be read: the minute before it was made, which is what it held. */
function gapAround(madeAtMs: number): TelemetryGap {
  const minute = Math.floor(madeAtMs / 60_000) * 60 - 60;
  return { fromMinute: minute, toMinute: minute, capture: '', reason: 'spool_damaged' };
}
