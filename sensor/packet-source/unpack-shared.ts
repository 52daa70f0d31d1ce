/** The memory that the reader of a packed file and the thread that unpacks it share. */

export type Packing = 'gzip' | 'zstd';

export const pieces = 4;
export const pieceBytes = 262_144;
/** Of each piece: its state and its length. One word before them counts the KiB of the file that were taken. */
export const wordsOfPiece = 2;
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
