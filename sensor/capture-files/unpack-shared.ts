import { readSync } from 'node:fs';

/** Memory shared by the reader of a compressed file and the thread that decompresses it. */

export type Packing = 'gzip' | 'zstd';

export const pieces = 4;
export const pieceBytes = 262_144;
/** State and length of each piece. The word before them counts the KiB of the file that were read. */
export const wordsOfPiece = 2;
/** After the pieces: 1 when the reader closes the file, and 1 when the thread has stopped reading it. */
export const closingWord = 1 + pieces * wordsOfPiece;
export const endedWord = closingWord + 1;
export const wordsMax = endedWord + 1;
/** Value of the first word before the thread runs. */
export const notStarted = -1;
export const unpackState = { empty: 0, full: 1, end: 2, damaged: 3 } as const;

export interface UnpackInput {
  descriptor: number;
  /** Bytes of the file that were already read. */
  head: Uint8Array;
  packing: Packing;
  words: SharedArrayBuffer;
  bytes: SharedArrayBuffer;
}

const emptyWaitMs = 5;

/** Reads once; waits for data in an empty pipe. */
export function readOnce(descriptor: number, into: Uint8Array, at: number, length: number): number {
  for (;;) {
    try {
      return readSync(descriptor, into, at, length, null);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EOF') return 0;
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, emptyWaitMs);
    }
  }
}
