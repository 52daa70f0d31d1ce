/**
 * The spool's operations over one file.
 *
 * Synchronous throughout: each call is one short transaction, and none can interleave with another. A file that fails is
 * opened anew at the next call, and a damaged one is mended.
 */
import { randomUUID } from 'node:crypto';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { ClockStamp } from '#sensor/host-time/index.ts';
import { addRange, coveredAfterMove, hasMinute, lastBefore, upTo } from './minute-ranges.ts';
import { createSpoolRoom, type QueueDeps, SpoolQueue } from './queue.ts';
import { isWorthSending } from './record-kind.ts';
import { salvage } from './salvage.ts';
import { currentSpoolFile, makeDurableFile, readStateCopy } from './spool-file.ts';
import { type SpoolState, spoolFormat } from './spool-state.ts';
import type { CommitExtras, PendingUpload, SpoolStatus } from './spooled-upload.ts';
import {
  addRun,
  type CommittedBy,
  committedBy,
  dropRunsBefore,
  findShift,
  isSameClock,
  type Stamped,
  stampOne,
  withRightClock,
} from './stamps.ts';
import { openSpoolStore, type SpoolStore, type UploadRow } from './store.ts';
import {
  type CommitRows,
  coversOf,
  coversOrGap,
  lastMinuteOf,
  minutesOf,
  payloadIsIntact,
  renumberedRow,
  restampedRow,
  settledRow,
  uploadRows,
} from './upload-row.ts';

const truncateWalEveryMs = 600_000;

/** `kinds`: the kinds of records that the spool is given; `sensor/records` lists them. */
export type SpoolOptions = Omit<QueueDeps, 'room'>;

export type Spool = ReturnType<typeof createSpool>;

/** Makes a spool; nothing is touched before `open`. */
export function createSpool(options: SpoolOptions) {
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
    /** Opens or makes the file, and mends it when it is damaged. Throws a `CodedError` (`spool.…`). */
    open: (): void => file.use(() => {}),
    close: (): void => file.close(),
    /**
     * Commits minutes and gaps at once, as one upload or as several where one would be too large for the wire; they
     * count as covered from then on. A commit whose name is that of the latest one happened already, and nothing of it is
     * taken again; without a name minutes that are covered are left out. Throws `spool.full` when there is no room and
     * `spool.failed` when the disk fails. Then nothing is changed, but for a sync that failed after the bytes were written:
     * its commit may turn out to have happened. Other records go with the first upload, and with it alone, urgent ones
     * in uploads of their own; those whose kind goes alone are taken also of a commit that happened already.
     */
    append: (
      minutes: readonly TelemetryMinute[],
      gaps: readonly TelemetryGap[],
      extras?: CommitExtras,
    ): void => file.use((queue) => appendCommit(queue, minutes, gaps, extras)),
    /** The first urgent upload, else the first of all, verified against its digest, or null. */
    oldest: (): PendingUpload | null => file.use((queue) => nextUpload(queue, true)),
    /** As `oldest`, without urgent ones: for a monitor that does not take them. */
    oldestOfBulk: (): PendingUpload | null => file.use((queue) => nextUpload(queue, false)),
    /** Deletes the upload and stores its receipt, in one transaction. */
    acknowledge: (upload: PendingUpload, receipt: 'accepted' | 'duplicate'): void =>
      file.use((queue) => {
        if (acknowledgeUpload(queue, upload, receipt)) truncateLongLog(queue);
      }),
    /**
     * Puts the gaps that its records are lost as in the place of an upload that must never be sent again. Gaps that it
     * carried stay; an upload of gaps alone, or whose loss means nothing, is deleted. Returns the gaps that replace it.
     */
    refuse: (upload: PendingUpload): TelemetryGap[] => file.use((queue) => refuseUpload(queue, upload)),
    /**
     * Gives the upload a new identity, and those after it too, because the monitor holds another upload of its number:
     * this file is an old copy of one that went on elsewhere.
     */
    renumber: (upload: PendingUpload): void => file.use((queue) => renumberUploads(queue, upload)),
    /**
     * Stamps an upload again by the clock of now, which is right, under a new number. Only for one that the monitor can't
     * have stored. False: its times stay as they are. An upload in which nothing is left is deleted.
     */
    restamp: (upload: PendingUpload, by: ClockStamp, nowMs: number): boolean =>
      file.use((queue) => restampUpload(queue, upload, by, nowMs)),
    /**
     * Settles the first upload in the queue against those that were delivered: a minute that they contain too is named by a
     * gap, and a gap of unobserved minutes leaves out the minutes that they contain. To be called before the upload is sent;
     * its times are final by then. True: it was changed, so it is to be read again. An empty upload is deleted.
     */
    settle: (upload: PendingUpload): boolean => file.use((queue) => settleUpload(queue, upload)),
    /** Keeps how a right clock stands to this boot's uptime, for uploads that another boot will find. */
    noteRightClock(right: ClockStamp): void {
      const rightClocks = withRightClock(file.latest.state.rightClocks ?? [], right);
      if (!rightClocks) return;
      file.use((queue) => queue.commit({ ...queue.state, rightClocks }, () => {}));
    },
    /** The clock of the latest commit; null where it was not told. */
    lastStampedBy: (): CommittedBy | null => file.latest.state.lastStampedBy ?? null,
    /** The name of the latest commit that has one. */
    lastCommit: (): string | null => file.latest.state.lastCommit ?? null,
    /** True when a minute was committed or is named by a gap. */
    isCovered: (minute: number): boolean => hasMinute(file.latest.state.covered, minute),
    /** The last covered minute before `minute`, or null. */
    coveredBefore: (minute: number): number | null => lastBefore(file.latest.state.covered, minute),
    status(): SpoolStatus {
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

/** Appends the minutes, gaps and other records that are not in the spool yet. Throws `spool.full` without room. */
function appendCommit(
  queue: SpoolQueue,
  minutes: readonly TelemetryMinute[],
  gaps: readonly TelemetryGap[],
  extras: CommitExtras = {},
): void {
  const { deps, state } = queue;
  const { fresh, isKnown } = findFresh(state, minutes, extras.commit ?? null);
  const others = { minutes: [], gaps: [], ...extras.records };
  if (isKnown && !isWorthSending(deps.kinds, others)) return;
  const freshGaps = isKnown ? [] : [...gaps];
  const first = {
    position: queue.lastPosition + 1,
    spoolId: state.spoolId,
    sequence: state.nextSequence,
    madeAtMs: deps.clock.nowMs(),
  };
  const rows = uploadRows(deps, first, { ...others, minutes: fresh, gaps: freshGaps });
  const payloadBytes = rows.all.reduce((sum, row) => sum + row.payload.length, 0);
  if (fresh.length > 0) deps.room.require(queue.store, queue.pending.bytes, payloadBytes);
  queue.commitRows(appendedState(state, rows, fresh, freshGaps, extras), rows.all);
  if (fresh.length > 0) deps.room.note(payloadBytes);
}

/**
 * The minutes that the spool has not taken, and whether it has taken the whole commit: one whose sync failed may have
 * happened all the same, and then the caller comes with it once more.
 */
function findFresh(
  state: SpoolState,
  minutes: readonly TelemetryMinute[],
  name: string | null,
): { fresh: TelemetryMinute[]; isKnown: boolean } {
  if (name !== null) {
    const isKnown = name === state.lastCommit;
    return { fresh: isKnown ? [] : [...minutes], isKnown };
  }
  const fresh = minutes.filter(({ minute }) => !hasMinute(state.covered, minute));
  return { fresh, isKnown: minutes.length > 0 && fresh.length === 0 };
}

/** The first upload, or null; an urgent one goes first where they are `withUrgent`. Damaged ones before it become gaps. */
function nextUpload(queue: SpoolQueue, withUrgent: boolean): PendingUpload | null {
  for (;;) {
    const { firstUrgent } = queue.pending;
    const first = () =>
      firstUrgent === null ? queue.store.firstUpload() : queue.store.uploadAt(firstUrgent);
    const row = withUrgent ? first() : queue.firstOfBulk();
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
function settleUpload(queue: SpoolQueue, upload: PendingUpload): boolean {
  const { deps, state } = queue;
  const row = queue.rowOf(upload);
  const isPart = (state.parts ?? []).includes(upload.position);
  const settled = row && settledRow(deps, row, { delivered: state.delivered!, isPart });
  if (!settled) return false;
  queue.putInPlace(upload.position, settled.row);
  return true;
}

// Opens the spool's file and finds it sound. Every error closes it again.

/** Opens the queue, or makes an empty one. `isDoubtful`: the disk may hold less than the log seems to. */
function openQueue(deps: QueueDeps, isDoubtful: boolean): SpoolQueue {
  const { directory, clock } = deps;
  const { path } = currentSpoolFile(directory);
  makeDurableFile(path, directory);
  const store = openSpoolStore(path, deps.bytesMax);
  try {
    if (store.isEmpty()) createState(store, directory);
    const state = readSoundState(store, directory);
    // After a failed sync the kernel may show bytes that no disk holds, and call the next sync of them good. Written
    // into the other file and synced there, they are durable in any state of the log.
    if (isDoubtful) store.truncateWal();
    const thisMinute = Math.floor(clock.nowMs() / 60_000) * 60;
    // An earlier version did not tell what it collected from what it named as missing, and covered a future that its
    // clock once showed.
    const delivered = state.delivered ?? upTo(state.covered, thisMinute);
    return new SpoolQueue(deps, store, { ...state, delivered });
  } catch (error) {
    store.close();
    throw error;
  }
}

function createState(store: SpoolStore, directory: string): void {
  // A spool that was begun has left its state beside it: this one was emptied or removed.
  if (readStateCopy(directory)) throw new CodedError('spool.damaged', `The spool in ${directory} is empty.`);
  const spoolId = randomUUID();
  store.create({ format: spoolFormat, spoolId, nextSequence: 1, covered: [], lastReceipt: null });
}

function readSoundState(store: SpoolStore, directory: string): SpoolState {
  if (!store.isSound()) throw new CodedError('spool.damaged', `The spool in ${directory} is damaged.`);
  const state = store.readState();
  if (!state) throw new CodedError('spool.damaged', `The spool in ${directory} has lost its state.`);
  if (state.format > spoolFormat) {
    throw new CodedError(
      'spool.newer',
      `The spool in ${directory} was made by a newer sensor. Install that one.`,
    );
  }
  return state;
}

/** Deletes the upload and stores its receipt. False when that happened already. */
function acknowledgeUpload(queue: SpoolQueue, upload: PendingUpload, receipt: 'accepted' | 'duplicate') {
  const { state, store } = queue;
  const row = queue.rowOf(upload);
  if (!row) return false;
  const delivered = minutesOf(row).reduce((all, minute) => addRange(all, minute, minute), state.delivered!);
  const isFirst = store.firstUpload()?.position === row.position;
  const next = deliveredState(state, row.position, isFirst);
  queue.putInPlace(row.position, null, { ...next, lastReceipt: queue.receiptFor(row, receipt), delivered });
  return true;
}

/** Puts the gaps that its records are lost as in the place of a refused upload, and returns them. */
function refuseUpload(queue: SpoolQueue, upload: PendingUpload): TelemetryGap[] {
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

/** The state after these rows were appended, with these minutes and gaps in them. */
function appendedState(
  state: SpoolState,
  rows: CommitRows,
  minutes: readonly TelemetryMinute[],
  gaps: readonly TelemetryGap[],
  extras: CommitExtras = {},
): SpoolState {
  const { commit, stampedBy: by } = extras;
  let covered = state.covered;
  for (const { minute } of minutes) covered = addRange(covered, minute, minute);
  for (const { fromMinute, toMinute } of gaps) covered = addRange(covered, fromMinute, toMinute);
  const throughMinute = Math.max(...minutes.map(({ minute }) => minute), ...gaps.map((gap) => gap.toMinute));
  const parts = rows.parts.map(({ position }) => position);
  return {
    ...state,
    nextSequence: state.nextSequence + rows.all.length,
    covered,
    stamps: addRun(state.stamps ?? [], rows.all[0]!.position, by),
    ...(parts.length > 0 ? { parts: [...(state.parts ?? []), ...parts] } : {}),
    ...(commit === undefined ? {} : { lastCommit: commit }),
    ...(by && Number.isFinite(throughMinute)
      ? { lastStampedBy: committedBy(state.lastStampedBy, by, throughMinute) }
      : {}),
  };
}

/** The state after the upload at this position left; `isFirst`: no other one waits before it. */
function deliveredState(state: SpoolState, position: number, isFirst: boolean): SpoolState {
  const { stamps = [], parts } = state;
  return {
    ...state,
    ...(isFirst ? { stamps: dropRunsBefore(stamps, position + 1) } : {}),
    ...(parts ? { parts: parts.filter((one) => (isFirst ? one > position : one !== position)) } : {}),
  };
}

// Gives uploads another identity or other times.

/** Gives the upload, and those of its spool behind it, the numbers of a new spool. */
function renumberUploads(queue: SpoolQueue, upload: PendingUpload): void {
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
function restampUpload(queue: SpoolQueue, upload: PendingUpload, by: ClockStamp, nowMs: number): boolean {
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

// SQLite's errors sorted by what the spool does about them.

/** Primary result codes of SQLite. */
const logicError = 1;
const constraint = 19;
const busy = 5;
const ioError = 10;
const corrupt = 11;
const full = 13;
const cantOpen = 14;
const readOnly = 8;
const notADatabase = 26;
/** The file ends within a page (an extended code of `ioError`): that is no failure of the disk, it will not pass. */
const shortRead = 522;

function extendedCodeOf(error: unknown): number {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code : 0;
}

const codeOf = (error: unknown) => extendedCodeOf(error) & 0xff;

/** True when the file is damaged rather than the disk full or busy. */
function isDamage(error: unknown): boolean {
  // The statements never change: one that the file does not understand, or a row that breaks a rule, is damage too.
  const signs = [corrupt, notADatabase, logicError, constraint];
  return (
    signs.includes(codeOf(error)) || extendedCodeOf(error) === shortRead || hasCode(error, 'spool.damaged')
  );
}

/** True when the handle must not be trusted any more and the file is to be opened anew. */
function breaksHandle(error: unknown): boolean {
  const code = codeOf(error);
  return (code === ioError && !isDamage(error)) || code === cantOpen || code === readOnly;
}

/** The error that callers of the spool see. */
function spoolError(error: unknown, directory: string): CodedError {
  if (error instanceof CodedError) return error;
  const why = describeError(error);
  switch (codeOf(error)) {
    case full:
      return new CodedError('spool.full', `The spool in ${directory} or its disk is full.`, {}, error);
    case busy:
      return new CodedError(
        'spool.in_use',
        `Another sensor already uses ${directory}. Stop it, or give this one another SVC_SENSOR_STATE_DIR.`,
        {},
        error,
      );
    default: {
      const isDenied = /EACCES|EPERM|EROFS|ENOTDIR/.test(why) || [cantOpen, readOnly].includes(codeOf(error));
      const remedy = isDenied ? " Give the folder to the sensor's user, or set SVC_SENSOR_STATE_DIR." : '';
      return new CodedError(
        'spool.failed',
        `The spool in ${directory} can't be used: ${why}.${remedy}`,
        {},
        error,
      );
    }
  }
}
