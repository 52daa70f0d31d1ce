/** What the spool holds and tells: uploads that wait, receipts, and its own condition. */

import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { ClockStamp } from '#sensor/host-time/index.ts';
import type { OtherRecords } from './record-kind.ts';
import type { CommittedBy, StampedBy } from './stamps.ts';

/** An upload on disk without a stored receipt. Its identity is the same in every file. */
export interface PendingUpload {
  /** Place in the queue. */
  position: number;
  /** `minutes`, the name of an urgent kind of record, or `gaps` for anything else. */
  kind: string;
  spoolId: string;
  sequence: number;
  madeAtMs: number;
  /** Zstandard-compressed protobuf, as it is sent. */
  body: Uint8Array;
  /** By which clock its times are; a blank boot where that is not known. */
  stampedBy: StampedBy;
  /** It was the first of its priority when this spool was opened, so it may have been sent by then. */
  mayBeSent: boolean;
  /** Created since this spool was opened, so it was never sent before. */
  isNew: boolean;
}

/** What the collector tells of a commit. */
export interface CommitExtras {
  /** Records that go with the minutes and gaps. */
  records?: OtherRecords;
  /** The commit's name: one that happened is not repeated. */
  commit?: string;
  /** By which clock its minutes are stamped. */
  stampedBy?: StampedBy;
}

export interface Receipt {
  spoolId: string;
  sequence: number;
  receipt: 'accepted' | 'duplicate' | 'refused';
  atMs: number;
  /** The last minute that this upload spoke of. */
  throughMinute: number;
}

export interface SpoolStatus {
  spoolId: string;
  pendingUploads: number;
  pendingBytes: number;
  /** What pending uploads may take. */
  pendingBytesMax: number;
  lastReceipt: Receipt | null;
  /** Minutes of outage that the free room lasts at the present rate; null while no rate is known. */
  roomMinutes: number | null;
}

export interface Spool {
  /** Opens or makes the file, and mends it when it is damaged. Throws a `CodedError` (`spool.…`). */
  open(): void;
  close(): void;
  /**
   * Commits minutes and gaps at once, as one upload or as several where one would be too large for the wire; they
   * count as covered from then on. A commit whose name is that of the latest one happened already, and nothing of it is
   * taken again; without a name minutes that are covered are left out. Throws `spool.full` when there is no room and
   * `spool.failed` when the disk fails. Then nothing is changed, but for a sync that failed after the bytes were written:
   * its commit may turn out to have happened. Other records go with the first upload, and with it alone, urgent ones
   * in uploads of their own; those whose kind goes alone are taken also of a commit that happened already.
   */
  append(minutes: readonly TelemetryMinute[], gaps: readonly TelemetryGap[], extras?: CommitExtras): void;
  /** The first urgent upload, else the first of all, verified against its digest, or null. */
  oldest(): PendingUpload | null;
  /** As `oldest`, without urgent ones: for a monitor that does not take them. */
  oldestOfBulk(): PendingUpload | null;
  /** Deletes the upload and stores its receipt, in one transaction. */
  acknowledge(upload: PendingUpload, receipt: 'accepted' | 'duplicate'): void;
  /**
   * Puts the gaps that its records are lost as in the place of an upload that must never be sent again. Gaps that it
   * carried stay; an upload of gaps alone, or whose loss means nothing, is deleted. Returns the gaps that replace it.
   */
  refuse(upload: PendingUpload): TelemetryGap[];
  /**
   * Gives the upload a new identity, and those after it too, because the monitor holds another upload of its number:
   * this file is an old copy of one that went on elsewhere.
   */
  renumber(upload: PendingUpload): void;
  /**
   * Stamps an upload again by the clock of now, which is right, under a new number. Only for one that the monitor can't
   * have stored. False: its times stay as they are. An upload in which nothing is left is deleted.
   */
  restamp(upload: PendingUpload, clock: ClockStamp, nowMs: number): boolean;
  /**
   * Settles the first upload in the queue against those that were delivered: a minute that they contain too is named by a
   * gap, and a gap of unobserved minutes leaves out the minutes that they contain. To be called before the upload is sent;
   * its times are final by then. True: it was changed, so it is to be read again. An empty upload is deleted.
   */
  settle(upload: PendingUpload): boolean;
  /** Keeps how a right clock stands to this boot's uptime, for uploads that another boot will find. */
  noteRightClock(right: ClockStamp): void;
  /** The clock of the latest commit; null where it was not told. */
  lastStampedBy(): CommittedBy | null;
  /** The name of the latest commit that has one. */
  lastCommit(): string | null;
  /** True when a minute was committed or is named by a gap. */
  isCovered(minute: number): boolean;
  /** The last covered minute before `minute`, or null. */
  coveredBefore(minute: number): number | null;
  status(): SpoolStatus;
}
