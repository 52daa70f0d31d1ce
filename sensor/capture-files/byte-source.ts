/**
 * Bytes of a capture file, of standard input (`-`), or of a decompressed gzip or Zstandard file.
 *
 * Frames are read synchronously, but Node.js decompresses streams asynchronously only. So a thread decompresses and
 * passes pieces in shared memory; the reader waits for pieces, and both work at the same time.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import {
  closingWord,
  endedWord,
  notStarted,
  type Packing,
  pieceBytes,
  pieces,
  readOnce,
  type UnpackInput,
  unpackState,
  wordsMax,
  wordsOfPiece,
} from './unpack-shared.ts';

const standardInput = 0;
const headBytes = 4;
/** The thread can not report an error while the reader waits, and a machine may be suspended for long. */
const startPatienceMs = 300_000;

export interface ByteSource {
  /** Size of the file on disk, 0 when unknown. */
  readonly fileBytes: number;
  /** Estimated ratio of the content's size to the file's size. */
  readonly growth: number;
  /** Bytes of the file that were read so far. */
  readonly taken: number;
  /** Reads at most `length` bytes into `into` at `at`. Returns 0 at the end. */
  read(into: Uint8Array, at: number, length: number): number;
  /** Why the bytes ended early, as a sentence, or null. */
  readonly problem: string | null;
  close(): void;
}

/** Opens a file, or standard input for `-`. Throws `NotACaptureError`. */
export function openBytes(path: string): ByteSource {
  const { descriptor, fileBytes } = openDescriptor(path);
  try {
    const head = readHead(descriptor);
    const packing = packingOf(path, head);
    const plain = new PlainBytes(path, descriptor, fileBytes, head);
    return packing ? new UnpackedBytes(path, plain, packing) : plain;
  } catch (error) {
    if (descriptor !== standardInput) closeSync(descriptor);
    throw error;
  }
}

function openDescriptor(path: string): { descriptor: number; fileBytes: number } {
  let descriptor = standardInput;
  try {
    if (path !== '-') descriptor = openSync(path, 'r');
    const stat = fstatSync(descriptor);
    if (stat.isDirectory()) {
      if (descriptor !== standardInput) closeSync(descriptor);
      throw new NotACaptureError(`${path} is a directory, not a capture file.`);
    }
    return { descriptor, fileBytes: stat.isFile() ? stat.size : 0 };
  } catch (error) {
    if (error instanceof NotACaptureError) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    const reasons: Record<string, string> = { ENOENT: 'there is no such file', EACCES: 'permission denied' };
    throw new NotACaptureError(`cannot open ${path}: ${reasons[code ?? ''] ?? String(code)}.`);
  }
}

function readHead(descriptor: number): Uint8Array {
  const head = new Uint8Array(headBytes);
  let length = 0;
  while (length < headBytes) {
    const got = readOnce(descriptor, head, length, headBytes - length);
    if (got === 0) break;
    length += got;
  }
  return head.subarray(0, length);
}

function packingOf(path: string, head: Uint8Array): Packing | null {
  if (head.length < headBytes) return null;
  const magic = new DataView(head.buffer, head.byteOffset).getUint32(0, false);
  if (magic >>> 16 === 0x1f8b) return 'gzip';
  if (magic === 0x28b52ffd) return 'zstd';
  const unpack = magic === 0xfd377a58 ? 'xz' : magic >>> 8 === 0x425a68 ? 'bzip2' : null;
  if (!unpack) return null;
  throw new NotACaptureError(
    `${path} is compressed with ${unpack}. Decompress it first: ${unpack} -dc FILE | … read -`,
  );
}

class PlainBytes implements ByteSource {
  readonly fileBytes: number;
  readonly growth = 1;
  problem: string | null = null;
  taken = 0;
  readonly #path: string;
  readonly #descriptor: number;
  #head: Uint8Array;

  constructor(path: string, descriptor: number, fileBytes: number, head: Uint8Array) {
    this.#path = path;
    this.#descriptor = descriptor;
    this.fileBytes = fileBytes;
    this.#head = head;
  }

  read(into: Uint8Array, at: number, length: number): number {
    let got = Math.min(this.#head.length, length);
    if (got > 0) {
      into.set(this.#head.subarray(0, got), at);
      this.#head = this.#head.subarray(got);
    } else got = this.#readMore(into, at, length);
    this.taken += got;
    return got;
  }

  /** After a disk error the bytes before it are still returned. */
  #readMore(into: Uint8Array, at: number, length: number): number {
    try {
      return readOnce(this.#descriptor, into, at, length);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      this.problem = `${this.#path} can not be read any further (${code ?? 'unknown error'}).`;
      return 0;
    }
  }

  /** Passes the descriptor and the bytes that were read to a thread. */
  handOver(): { descriptor: number; head: Uint8Array } {
    return { descriptor: this.#descriptor, head: this.#head };
  }

  close(): void {
    if (this.#descriptor !== standardInput) closeSync(this.#descriptor);
  }
}

class UnpackedBytes implements ByteSource {
  readonly fileBytes: number;
  /** Captures typically compress to a fifth. At higher ratios the flow table is smaller than ideal. */
  readonly growth = 16;
  problem: string | null = null;
  readonly #path: string;
  readonly #plain: PlainBytes;
  readonly #worker: Worker;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  #piece = 0;
  #at = 0;

  constructor(path: string, plain: PlainBytes, packing: Packing) {
    this.#path = path;
    this.#plain = plain;
    this.fileBytes = plain.fileBytes;
    const words = new SharedArrayBuffer(4 * wordsMax);
    const bytes = new SharedArrayBuffer(pieces * pieceBytes);
    this.#words = new Int32Array(words);
    this.#bytes = new Uint8Array(bytes);
    const workerData: UnpackInput = { ...plain.handOver(), packing, words, bytes };
    this.#words[0] = notStarted;
    // The options of this process apply to its own entry file only.
    const url = new URL('./unpack-worker.ts', import.meta.url);
    // Loaded for compressed files only, because loading takes as long as reading a small file.
    const threads = process.getBuiltinModule('node:worker_threads');
    this.#worker = new threads.Worker(url, { workerData, execArgv: [] });
    this.#worker.unref();
  }

  /** The thread counts the bytes it read, in KiB. */
  get taken(): number {
    return Math.max(0, Atomics.load(this.#words, 0)) * 1024;
  }

  read(into: Uint8Array, at: number, length: number): number {
    const word = 1 + this.#piece * wordsOfPiece;
    const isLate = Atomics.wait(this.#words, word, unpackState.empty, startPatienceMs) === 'timed-out';
    if (isLate && Atomics.load(this.#words, 0) === notStarted)
      throw new Error('the decompression thread does not start');
    // Once it runs, the thread reports its end, even for a slow file.
    Atomics.wait(this.#words, word, unpackState.empty);
    const state = Atomics.load(this.#words, word);
    if (state === unpackState.damaged)
      this.problem = `${this.#path} is damaged or truncated: it can not be decompressed completely.`;
    if (state !== unpackState.full) return 0;
    const filled = this.#words[word + 1]!;
    const start = this.#piece * pieceBytes + this.#at;
    const got = Math.min(length, filled - this.#at);
    into.set(this.#bytes.subarray(start, start + got), at);
    this.#at += got;
    if (this.#at === filled) {
      this.#at = 0;
      this.#piece = (this.#piece + 1) % pieces;
      Atomics.store(this.#words, word, unpackState.empty);
      Atomics.notify(this.#words, word);
    }
    return got;
  }

  close(): void {
    Atomics.store(this.#words, closingWord, 1);
    for (let piece = 0; piece < pieces; piece += 1) {
      const word = 1 + piece * wordsOfPiece;
      Atomics.store(this.#words, word, unpackState.empty);
      Atomics.notify(this.#words, word);
    }
    // A thread that still reads would take bytes of the next file with the same descriptor number. Do not wait for a
    // thread that reads a pipe: the pipe may stay open without data.
    if (this.fileBytes > 0) Atomics.wait(this.#words, endedWord, 0, startPatienceMs);
    void this.#worker.terminate();
    this.#plain.close();
  }
}

/** The file is not a capture or can not be opened. The message is shown to people. */
export class NotACaptureError extends Error {}
