/**
 * The sensor's disk: every closed minute lies here, durably, until the monitor's receipt for it lies here too.
 *
 * Promises: `append` returns after the upload is on disk (WAL, `synchronous=FULL`); an upload leaves only in the
 * transaction that stores its receipt or puts a gap record in its place; a (spool, sequence) pair never names two
 * uploads; no minute is taken twice. A damaged record costs that record and is reported as a gap; a damaged file is
 * put aside, and what is intact in it goes on in a new one. When the disk is full, nothing pending is given up.
 */
export { type MinuteRange, missingBetween } from './minute-ranges.ts';
export { createSpool, type SpoolOptions } from './spool.ts';
export type {
  CommitExtras,
  CommittedBy,
  PendingUpload,
  Receipt,
  Spool,
  SpoolStatus,
  UploadExtras,
} from './spooled-upload.ts';
export type { StampedBy } from './stamp-runs.ts';
