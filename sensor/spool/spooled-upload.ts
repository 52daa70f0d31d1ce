/** What the spool holds and tells: uploads that wait, receipts, and its own condition. */

import type { OtherRecords } from './record-kind.ts';
import type { StampedBy } from './stamps.ts';
import type { UploadIdentity } from './upload-row.ts';

/** An upload on disk without a stored receipt. Its identity is the same in every file. */
export interface PendingUpload extends UploadIdentity {
  /** `minutes`, the name of an urgent kind of record, or `gaps` for anything else. */
  kind: string;
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
