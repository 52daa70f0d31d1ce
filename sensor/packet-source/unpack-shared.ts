/** The memory that the reader of a packed file and the thread that unpacks it share. */

export type Packing = 'gzip' | 'zstd';

export const pieces = 4;
export const pieceBytes = 262_144;
/** Of each piece: its state and its length. One word before them counts the KiB of the file that were taken. */
export const wordsOfPiece = 2;
/** After the pieces: 1 when the reader closes the file, and 1 when the thread will not read of it any more. */
export const closingWord = 1 + pieces * wordsOfPiece;
export const endedWord = closingWord + 1;
export const wordsMax = endedWord + 1;
/** In the first word until the thread runs. */
export const notStarted = -1;
export const unpackState = { empty: 0, full: 1, end: 2, damaged: 3 } as const;

export interface UnpackInput {
  descriptor: number;
  /** What was read of the file already. */
  head: Uint8Array;
  packing: Packing;
  words: SharedArrayBuffer;
  bytes: SharedArrayBuffer;
}
