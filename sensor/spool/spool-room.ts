/**
 * How much more the spool may take, in bytes and in minutes of outage.
 *
 * Minutes are refused before the file or the disk is full to the brim: then not even a receipt could be stored.
 */
import { statfsSync } from 'node:fs';
import { CodedError } from '#common/errors/index.ts';
import type { SpoolStore } from './store.ts';

/** Payloads of minutes may fill this much of the file (128 of 160 MiB); the rest is for gaps, receipts and SQLite. */
const payloadShare = 0.8;
/** Pages in use, with any contents: small uploads need more room in pages than their payloads. */
const pageShare = 0.95;
/** What stays free on the disk for receipts and gaps: deleting needs room in SQLite's log first. */
const diskReserveBytes = 2 * 1024 * 1024;
/** The rate is the mean of about so many minutes. */
const rateMinutes = 60;

export type SpoolRoom = ReturnType<typeof createSpoolRoom>;

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
