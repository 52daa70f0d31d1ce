/**
 * The queue of one open spool file: uploads in order, and the state beside them.
 *
 * The state is kept in memory too, and replaced only after the commit, so a failed transaction changes nothing. After a
 * disk error the file is opened anew, as another queue.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { TelemetryGap } from '#contracts/sensor-api/telemetry.ts';
import type { RecordKind } from './record-kind.ts';
import { writeStateCopy } from './spool-file.ts';
import type { SpoolRoom } from './spool-room.ts';
import { type SpoolState, toStored } from './spool-state.ts';
import type { PendingUpload, Receipt } from './spooled-upload.ts';
import { stampAt } from './stamp-runs.ts';
import type { StampedBy } from './stamps.ts';
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
