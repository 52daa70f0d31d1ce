/**
 * The queue of one open spool file: uploads in order, and the state beside them.
 *
 * The state is kept in memory too, and replaced only after the commit, so a failed transaction changes nothing. After a
 * disk error the file is opened anew, as another queue.
 */

import { statfsSync } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import type { RecordKind } from './record-kind.ts';
import { writeStateCopy } from './spool-file.ts';
import { type SpoolState, toStored } from './spool-state.ts';
import type { PendingUpload, Receipt } from './spooled-upload.ts';
import { type StampedBy, stampAt } from './stamps.ts';
import type { SpoolStore, Totals, UploadRow } from './store.ts';
import { gapRow, lastMinuteOf } from './upload-row.ts';

export interface QueueDeps {
  directory: string;
  /** The file's size limit. */
  bytesMax: number;
  sensorVersion: string;
  kinds: readonly RecordKind[];
  clock: Clock;
  reporter: Reporter;
  room: SpoolRoom;
}

export class SpoolQueue {
  readonly deps: QueueDeps;
  readonly store: SpoolStore;
  readonly #urgentKinds: readonly string[];
  readonly #positionAtOpen: number;
  /** The first of each priority. */
  readonly #firstAtOpen: readonly (number | null)[];
  #state: SpoolState;
  #pending: Totals;
  #lastPosition: number;

  constructor(deps: QueueDeps, store: SpoolStore, state: SpoolState) {
    this.deps = deps;
    this.store = store;
    this.#state = state;
    this.#urgentKinds = deps.kinds.filter(({ priority }) => priority === 'urgent').map(({ name }) => name);
    this.#pending = store.totals(this.#urgentKinds);
    deps.room.learn(store.payloadBytesPerMinute());
    this.#lastPosition = store.lastPosition();
    this.#positionAtOpen = this.#lastPosition;
    this.#firstAtOpen = [this.firstOfBulk()?.position ?? null, this.#pending.firstUrgent];
  }

  /** The first upload that is not urgent. */
  firstOfBulk(): UploadRow | null {
    return this.store.firstUploadExcept(this.#urgentKinds);
  }

  get state(): SpoolState {
    return this.#state;
  }

  get pending(): Totals {
    return this.#pending;
  }

  /** The position of the latest upload, also of one that has left since the file was opened. */
  get lastPosition(): number {
    return this.#lastPosition;
  }

  /** Commits a change of the queue together with the state that follows it. */
  commit(next: SpoolState, change: (store: SpoolStore) => void): void {
    this.store.transaction(() => {
      change(this.store);
      this.store.writeState(next);
    });
    this.#state = next;
    this.#pending = this.store.totals(this.#urgentKinds);
    writeStateCopy(this.deps.directory, toStored(next));
  }

  /** Commits new rows behind all others. */
  commitRows(next: SpoolState, rows: readonly UploadRow[]): void {
    this.commit(next, (store) => {
      for (const row of rows) store.insertUpload(row);
    });
    this.#lastPosition += rows.length;
  }

  /** Commits an upload of these gaps, under a new number, in the place of another one. */
  replaceByGaps(position: number, gaps: TelemetryGap[]): void {
    const { spoolId, nextSequence } = this.#state;
    const identity = { position, spoolId, sequence: nextSequence, madeAtMs: this.deps.clock.nowMs() };
    this.commit({ ...this.#state, nextSequence: nextSequence + 1 }, (store) =>
      store.replaceUpload(gapRow(this.deps, identity, gaps)),
    );
  }

  /** Commits another row, or none, in the place of one. */
  putInPlace(position: number, row: UploadRow | null, next: SpoolState = this.#state): void {
    this.commit(next, (store) => {
      if (row) store.replaceUpload(row);
      else store.deleteUpload(position);
    });
  }

  /** The row of this upload, or null when it has been settled already. */
  rowOf(upload: PendingUpload): UploadRow | null {
    const row = this.store.uploadAt(upload.position);
    return row && row.spoolId === upload.spoolId && row.sequence === upload.sequence ? row : null;
  }

  toPending(row: UploadRow): PendingUpload {
    return {
      position: row.position,
      kind: row.kind,
      spoolId: row.spoolId,
      sequence: row.sequence,
      madeAtMs: row.madeAtMs,
      body: row.payload,
      stampedBy: this.stampAt(row.position),
      mayBeSent: this.#firstAtOpen.includes(row.position),
      isNew: row.position > this.#positionAtOpen,
    };
  }

  /** By which clock the upload at this position was stamped. */
  stampAt(position: number): StampedBy {
    return stampAt(this.#state.stamps ?? [], position);
  }

  receiptFor(row: UploadRow, receipt: Receipt['receipt']): Receipt {
    return {
      ...{ spoolId: row.spoolId, sequence: row.sequence, receipt, atMs: this.deps.clock.nowMs() },
      throughMinute: Math.max(this.#state.lastReceipt?.throughMinute ?? 0, lastMinuteOf(row)),
    };
  }
}

// How much more the spool may take, in bytes and in minutes of outage.
//
// Minutes are refused before the file or the disk is full to the brim: then not even a receipt could be stored.

/** Payloads of minutes may fill this much of the file (128 of 160 MiB); the rest is for gaps, receipts and SQLite. */
const payloadShare = 0.8;
/** Pages in use, with any contents: small uploads need more room in pages than their payloads. */
const pageShare = 0.95;
/** What stays free on the disk for receipts and gaps: deleting needs room in SQLite's log first. */
const diskReserveBytes = 2 * 1024 * 1024;
/** The rate is the mean of about so many minutes. */
const rateMinutes = 60;

type SpoolRoom = ReturnType<typeof createSpoolRoom>;

/** Makes the book-keeping of a file in `directory` that may grow to `bytesMax`. */
export function createSpoolRoom(directory: string, bytesMax: number) {
  let rate: number | null = null;

  function fileRoom(store: SpoolStore, pendingBytes: number): number {
    return Math.min(bytesMax * payloadShare - pendingBytes, bytesMax * pageShare - store.usedBytes());
  }

  /** Each byte goes once into the log and once into the file. */
  function diskRoom(store: SpoolStore): number {
    const disk = statfsSync(directory);
    return (disk.bavail * disk.bsize + store.unusedBytes() - diskReserveBytes) / 2;
  }

  return {
    /** What pending uploads may take. */
    payloadBytesMax: Math.floor(bytesMax * payloadShare),
    /** Throws `spool.full` when the spool or its disk has no room for this upload. */
    require(store: SpoolStore, pendingBytes: number, payloadBytes: number) {
      if (payloadBytes > fileRoom(store, pendingBytes)) {
        throw new CodedError('spool.full', 'The spool is full of uploads that wait for the monitor.');
      }
      if (payloadBytes > diskRoom(store)) {
        throw new CodedError('spool.full', `The disk of ${directory} is full.`);
      }
    },
    /** Takes a minute's size into the rate. */
    note(payloadBytes: number) {
      rate = rate === null ? payloadBytes : rate + (payloadBytes - rate) / rateMinutes;
    },
    /** Begins the rate with what the file tells, null when it tells nothing. */
    learn(bytesPerMinute: number | null) {
      rate ??= bytesPerMinute;
    },
    /** Minutes without the monitor that the rest of the room lasts at the present rate; null before the first minute. */
    minutesLeft(store: SpoolStore, pendingBytes: number): number | null {
      if (rate === null) return null;
      // The disk takes the log once, not twice for each minute to come.
      const room = Math.min(fileRoom(store, pendingBytes), diskRoom(store) * 2);
      return Math.max(0, Math.floor(room / rate));
    },
  };
}
