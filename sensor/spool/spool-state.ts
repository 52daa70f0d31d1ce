/**
 * What the spool knows besides its uploads, as one small JSON text with a digest.
 *
 * It lies in the file twice, in two tables and so on two pages: a flipped bit must neither take a number back nor
 * forget which minutes are covered.
 */
import { createHash } from 'node:crypto';
import type { ClockStamp } from '#sensor/host-time/index.ts';
import type { MinuteRange } from './minute-ranges.ts';
import type { Receipt } from './spooled-upload.ts';
import type { CommittedBy, StampRun } from './stamps.ts';

/** Version of the file's format; a higher one is a newer program's. */
export const spoolFormat = 1;

export interface SpoolState {
  format: number;
  spoolId: string;
  /** The number of the next upload; it only grows. */
  nextSequence: number;
  /** Minutes that were committed or are named by a gap. */
  covered: MinuteRange[];
  lastReceipt: Receipt | null;
  /** Minutes of which something was delivered. Older spools have none. */
  delivered?: MinuteRange[];
  /** By which clocks the uploads that wait were stamped. */
  stamps?: readonly StampRun[];
  /** Positions of uploads that go on with the minutes of the one before, which was too large for the wire alone. */
  parts?: readonly number[];
  /** The clock of the latest commit, and the last minute by it. */
  lastStampedBy?: CommittedBy;
  /** How a right clock stood to the uptime of each boot, as far as the monitor told it; the newest last. */
  rightClocks?: readonly ClockStamp[];
  /** The collector's name of its latest commit. */
  lastCommit?: string;
}

export interface StoredText {
  body: string;
  sha256: Uint8Array;
}

/** SHA-256 of texts and bytes in order, each preceded by its length so that none can run into the next. */
export function digestOf(...parts: (string | Uint8Array)[]): Uint8Array {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest();
}

/** True when the digest is that of these parts. */
export function digestMatches(sha256: unknown, ...parts: unknown[]): boolean {
  // A damaged file may hand out values of any type.
  const isPart = (part: unknown): part is string | Uint8Array =>
    typeof part === 'string' || part instanceof Uint8Array;
  return (
    sha256 instanceof Uint8Array && parts.every(isPart) && Buffer.compare(sha256, digestOf(...parts)) === 0
  );
}

/** The text of a state and its digest. */
export function toStored(state: SpoolState): StoredText {
  const body = JSON.stringify(state);
  return { body, sha256: digestOf(body) };
}

/** The state out of its stored text, or null when the digest does not fit. */
export function fromStored(stored: { body: unknown; sha256: unknown } | undefined): SpoolState | null {
  if (typeof stored?.body !== 'string' || !digestMatches(stored.sha256, stored.body)) return null;
  return JSON.parse(stored.body) as SpoolState;
}
