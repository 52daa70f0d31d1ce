/**
 * The sensor's disk: every closed minute lies here, durably, until the monitor's receipt for it lies here too.
 *
 * Promises: `append` returns after the upload is on disk (WAL, `synchronous=FULL`); an upload leaves only in the
 * transaction that stores its receipt or puts a gap record in its place; a (spool, sequence) pair never names two
 * uploads; no minute is taken twice. A damaged record costs that record and is reported as a gap; a damaged file is
 * put aside, and what is intact in it goes on in a new one. When the disk is full, nothing pending is given up.
 *
 * Of what it keeps the spool knows which minutes are covered, and the gaps that stand for them. What other records mean,
 * and which are urgent, their kinds say (`record-kind.ts`).
 */

export { type MinuteRange, missingBetween, namesCommon, subtractRanges } from './minute-ranges.ts';
export type { OtherRecords, RecordKind, RecordSource } from './record-kind.ts';
export { createSpool, type Spool } from './spool.ts';
export type { PendingUpload, SpoolStatus } from './spooled-upload.ts';
export type { CommittedBy, Shift, StampedBy } from './stamps.ts';
export { isSameClock } from './stamps.ts';
