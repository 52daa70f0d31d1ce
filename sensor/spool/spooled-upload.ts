/** What the spool holds and tells: uploads that wait, receipts, and its own condition. */
import type { TelemetryGap, TelemetryMinute, TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';

/** An upload on disk that no receipt has been stored for. Its identity never changes, whatever file it lies in. */
export interface PendingUpload {
  /** Place in the queue. */
  position: number;
  spoolId: string;
  sequence: number;
  madeAtMs: number;
  /** Zstandard-compressed protobuf, as it is sent. */
  body: Uint8Array;
  /** Made since this spool was opened, so nobody can have sent it before. */
  isNew: boolean;
}

/** What travels with minutes and gaps: the host's interfaces, and what probes measured. */
export type UploadExtras = Pick<TelemetryUpload, 'inventory' | 'probes'>;

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
   * count as covered from then on. Minutes that are covered already are left out. Throws `spool.full` when there is
   * no room and `spool.failed` when the disk fails. Then nothing is changed, but for a sync that failed after the
   * bytes were written: its minutes may turn out to be covered after all. The extras go with the first upload, and
   * with it alone; results of probes go even where every minute is covered, because the monitor tells them apart.
   */
  append(minutes: readonly TelemetryMinute[], gaps: readonly TelemetryGap[], extras?: UploadExtras): void;
  /** The first upload in the queue, verified against its digest, or null. */
  oldest(): PendingUpload | null;
  /** Deletes the upload and stores its receipt, in one transaction. */
  acknowledge(upload: PendingUpload, receipt: 'accepted' | 'duplicate'): void;
  /**
   * Puts a gap record in the place of an upload that must never be sent again. Gaps that it carried stay; an upload
   * of gaps alone is deleted. Returns the gaps that replace it.
   */
  refuse(upload: PendingUpload): TelemetryGap[];
  /**
   * Gives the upload a new identity, and those after it too, because the monitor holds another upload of its number:
   * this file is an old copy of one that went on elsewhere.
   */
  renumber(upload: PendingUpload): void;
  /** True when a minute was committed or is named by a gap. */
  isCovered(minute: number): boolean;
  /** The last covered minute before `minute`, or null. */
  coveredBefore(minute: number): number | null;
  status(): SpoolStatus;
}
