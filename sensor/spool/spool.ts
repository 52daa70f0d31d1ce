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
import { appendedState, deliveredState } from './appended-state.ts';
import { addRange, coveredAfterMove, hasMinute, lastBefore, upTo } from './minute-ranges.ts';
import { isWorthSending, type RecordKind } from './record-kind.ts';
import { findShift, type Stamped } from './restamp.ts';
import { salvage } from './salvage.ts';
import { breaksHandle, isDamage, spoolError } from './spool-errors.ts';
import { currentSpoolFile, makeDurableFile, readStateCopy, writeStateCopy } from './spool-file.ts';
import { createSpoolRoom } from './spool-room.ts';
import { type SpoolState, spoolFormat, toStored } from './spool-state.ts';
import type { PendingUpload, Receipt, Spool } from './spooled-upload.ts';
import { isSameClock, stampAt, stampOne, withRightClock } from './stamp-runs.ts';
import { openSpoolStore, type SpoolStore, type Totals, type UploadRow } from './store.ts';
import {
  coversOf,
  coversOrGap,
  gapRow,
  lastMinuteOf,
  minutesOf,
  payloadIsIntact,
  renumberedRow,
  restampedRow,
  settledRow,
  uploadRows,
} from './upload-row.ts';

const truncateWalEveryMs = 600_000;

export interface SpoolOptions {
  directory: string;
  /** The file's size limit. */
  bytesMax: number;
  sensorVersion: string;
  /** The kinds of records that it is given; `sensor/records` lists them. */
  kinds: readonly RecordKind[];
  clock: Clock;
  reporter: Reporter;
}

/** Makes a spool; nothing is touched before `open`. */
export function createSpool(options: SpoolOptions): Spool {
  const { directory, clock, reporter, kinds } = options;
  const urgentKinds = kinds.filter(({ priority }) => priority === 'urgent').map(({ name }) => name);
  let store: SpoolStore | null = null;
  let state: SpoolState;
  let pending: Totals = { uploads: 0, bytes: 0, firstUrgent: null };
  let lastPosition = 0;
  let positionAtOpen = 0;
  /** The first of each priority. */
  let firstAtOpen: readonly (number | null)[] = [];
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
      // into the other file and synced there, they are durable in any state of the log.
      if (isDoubtful) opened.truncateWal();
      isDoubtful = false;
      const thisMinute = Math.floor(clock.nowMs() / 60_000) * 60;
      // An earlier version did not tell what it collected from what it named as missing, and covered a future that its
      // clock once showed.
      state = { ...read, delivered: read.delivered ?? upTo(read.covered, thisMinute) };
      pending = opened.totals(urgentKinds);
      room.learn(opened.payloadBytesPerMinute());
      lastPosition = opened.lastPosition();
      if (store === null) {
        positionAtOpen = lastPosition;
        firstAtOpen = [opened.firstUpload()?.position ?? null, pending.firstUrgent];
      }
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
    const result = salvage({ ...options, file });
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
    pending = store.totals(urgentKinds);
    writeStateCopy(directory, toStored(next));
  }

  /** A damaged record goes; its gap takes its place. Returns the row that is first now. */
  function dropDamaged(store: SpoolStore, row: UploadRow): void {
    const gaps = coversOrGap(row).map(
      (gap): TelemetryGap => (gap.reason === 'refused' ? { ...gap, reason: 'spool_damaged' } : gap),
    );
    reporter.error('a spooled upload is damaged and becomes a gap', {
      sequence: row.sequence,
      gaps: gaps.length,
    });
    if (gaps.length > 0) replaceByGaps(store, row.position, gaps);
    else commit(store, state, () => store.deleteUpload(row.position));
  }

  function replaceByGaps(store: SpoolStore, position: number, gaps: TelemetryGap[]): void {
    const { spoolId, nextSequence } = state;
    const identity = { position, spoolId, sequence: nextSequence, madeAtMs: clock.nowMs() };
    commit(store, { ...state, nextSequence: nextSequence + 1 }, () => {
      store.replaceUpload(gapRow(options, identity, gaps));
    });
  }

  /** Another row, or none, in the place of one. */
  function putInPlace(store: SpoolStore, position: number, row: UploadRow | null): void {
    if (row) store.replaceUpload(row);
    else store.deleteUpload(position);
  }

  const toPending = (row: UploadRow): PendingUpload => ({
    position: row.position,
    spoolId: row.spoolId,
    sequence: row.sequence,
    madeAtMs: row.madeAtMs,
    body: row.payload,
    stampedBy: stampAt(state.stamps ?? [], row.position),
    mayBeSent: firstAtOpen.includes(row.position),
    isNew: row.position > positionAtOpen,
  });

  /** The row of this upload, or null when it has been settled already. */
  function rowOf(store: SpoolStore, upload: PendingUpload): UploadRow | null {
    const row = store.uploadAt(upload.position);
    return row && row.spoolId === upload.spoolId && row.sequence === upload.sequence ? row : null;
  }

  /** What there is to know of an upload's times; null where even that is damaged. */
  function stampOf(store: SpoolStore, row: UploadRow): Stamped | null {
    const covers = coversOf(row);
    if (!covers) return null;
    const by = stampAt(state.stamps ?? [], row.position);
    const lastMinute = lastMinuteOf(row);
    // Looked for only where it counts: of an upload that another boot stamped.
    const newestOfClock = () =>
      store.outlines().reduce((newest, one) => {
        const isSame = isSameClock(stampAt(state.stamps ?? [], one.position), by);
        return isSame && one.kind === 'minutes' ? Math.max(newest, lastMinuteOf(one)) : newest;
      }, lastMinute);
    return { by, lastMinute, hasMinutes: row.kind === 'minutes', newestOfClock };
  }

  const receiptFor = (row: UploadRow, receipt: Receipt['receipt']): Receipt => ({
    ...{ spoolId: row.spoolId, sequence: row.sequence, receipt, atMs: clock.nowMs() },
    throughMinute: Math.max(state.lastReceipt?.throughMinute ?? 0, lastMinuteOf(row)),
  });

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
        const name = extras?.commit ?? null;
        const isNamedKnown = name !== null && name === state.lastCommit;
        const fresh = minutes.filter(({ minute }) =>
          name === null ? !hasMinute(state.covered, minute) : !isNamedKnown,
        );
        const isKnown = name === null ? minutes.length > 0 && fresh.length === 0 : isNamedKnown;
        const others = { minutes: [], gaps: [], ...extras?.records };
        if (isKnown && !isWorthSending(kinds, others)) return;
        const freshGaps = isKnown ? [] : [...gaps];
        const first = { position: lastPosition + 1, spoolId: state.spoolId, sequence: state.nextSequence };
        const content = { ...others, minutes: fresh, gaps: freshGaps };
        const rows = uploadRows(options, { ...first, madeAtMs: clock.nowMs() }, content);
        const payloadBytes = rows.all.reduce((sum, row) => sum + row.payload.length, 0);
        if (fresh.length > 0) room.require(store, pending.bytes, payloadBytes);
        const next = appendedState(state, rows, fresh, freshGaps, extras);
        commit(store, next, () => {
          for (const row of rows.all) store.insertUpload(row);
        });
        lastPosition += rows.all.length;
        if (fresh.length > 0) room.note(payloadBytes);
      });
    },

    oldest() {
      return withStore((store) => {
        for (;;) {
          const { firstUrgent } = pending;
          const row = firstUrgent === null ? store.firstUpload() : store.uploadAt(firstUrgent);
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
        const minutes = minutesOf(row);
        const delivered = minutes.reduce((all, minute) => addRange(all, minute, minute), state.delivered!);
        const isFirst = store.firstUpload()?.position === row.position;
        const next = deliveredState(state, row.position, isFirst);
        commit(store, { ...next, lastReceipt: receiptFor(row, receipt), delivered }, () =>
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
        const gaps = row.kind === 'gaps' ? [] : coversOrGap(row);
        if (gaps.length > 0) {
          replaceByGaps(store, row.position, gaps);
          return gaps;
        }
        // A gap that the monitor refuses has nothing to stand in for it, nor has what is lost without a gap.
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
            renumbered.push(
              renumberedRow(options, row, { position, madeAtMs, sequence, spoolId: next.spoolId }),
            );
            next.nextSequence += 1;
          }
          row = store.uploadAfter(row.position);
        }
        commit(store, next, () => {
          for (const one of renumbered) store.replaceUpload(one);
        });
      });
    },

    restamp(upload, by, nowMs) {
      return withStore((store) => {
        const row = rowOf(store, upload);
        if (!row) return false;
        const stamped = stampOf(store, row);
        const shift = stamped && findShift(stamped, by, nowMs, state.rightClocks ?? []);
        if (!shift) return false;
        const { position, spoolId, madeAtMs } = row;
        const identity = { position, spoolId, madeAtMs, sequence: state.nextSequence };
        const again = restampedRow(options, row, identity, { shift, nowMs });
        const thisMinute = Math.floor(nowMs / 60_000) * 60;
        const moved = again && coversOf(again);
        const next: SpoolState = {
          ...state,
          nextSequence: state.nextSequence + 1,
          covered: coveredAfterMove(upTo(state.covered, thisMinute), coversOf(row) ?? [], moved ?? []),
          stamps: stampOne(state.stamps ?? [], position, { ...by, since: shift.since + shift.seconds }),
        };
        commit(store, next, () => putInPlace(store, position, again));
        return true;
      });
    },

    settle(upload) {
      return withStore((store) => {
        const row = rowOf(store, upload);
        const isPart = (state.parts ?? []).includes(upload.position);
        const settled = row && settledRow(options, row, { delivered: state.delivered!, isPart });
        if (!settled) return false;
        commit(store, state, () => putInPlace(store, upload.position, settled.row));
        return true;
      });
    },

    noteRightClock(right) {
      const rightClocks = withRightClock(state.rightClocks ?? [], right);
      if (!rightClocks) return;
      withStore((store) => commit(store, { ...state, rightClocks }, () => {}));
    },
    lastStampedBy: () => state.lastStampedBy ?? null,
    lastCommit: () => state.lastCommit ?? null,
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
