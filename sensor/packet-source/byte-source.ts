/**
 * The bytes of a capture file, of standard input (`-`), or of what is inside a gzip or Zstandard file.
 *
 * Reading is synchronous, as the reader of frames is. Node.js unpacks streams only asynchronously, so a thread does it and
 * hands pieces over in shared memory; the reader waits for it, and both work at once.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Worker } from 'node:worker_threads';
import { NotACaptureError } from './capture-error.ts';
import { readOnce } from './read-once.ts';
import {
  closingWord,
  endedWord,
  notStarted,
  type Packing,
  pieceBytes,
  pieces,
  type UnpackInput,
  unpackState,
  wordsMax,
  wordsOfPiece,
} from './unpack-shared.ts';

const standardInput = 0;
const headBytes = 4;
/** An error of the thread can't be told while its reader waits, and a machine may stand still for long. */
const startPatienceMs = 300_000;

export interface ByteSource {
  /** Size of the file as it lies there, 0 when it is not known. */
  readonly fileBytes: number;
  /** How much larger than the file its content may be expected to be. */
  readonly growth: number;
  /** Bytes of the file that were taken so far. */
  readonly taken: number;
  /** Reads at most `length` bytes into `into` at `at`; 0 at the end. */
  read(into: Uint8Array, at: number, length: number): number;
  /** Why it ended too early, a sentence, or null. */
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
      throw new NotACaptureError(`${path} is a folder, not a capture file.`);
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
    `${path} is compressed with ${unpack}. Read it so: ${unpack} -dc FILE | … read -`,
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

  /** A disk that fails in the middle ends the bytes: what came before is still worth reading. */
  #readMore(into: Uint8Array, at: number, length: number): number {
    try {
      return readOnce(this.#descriptor, into, at, length);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      this.problem = `${this.#path} can't be read any further (${code ?? 'unknown error'}).`;
      return 0;
    }
  }

  /** Gives the descriptor and what was read of it to a thread. */
  handOver(): { descriptor: number; head: Uint8Array } {
    return { descriptor: this.#descriptor, head: this.#head };
  }

  close(): void {
    if (this.#descriptor !== standardInput) closeSync(this.#descriptor);
  }
}

class UnpackedBytes implements ByteSource {
  readonly fileBytes: number;
  /** Captures shrink to a fifth or so; those that shrink more than this find fewer flows than they hold. */
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
    // Options of this process are about its own entry.
    const url = new URL('./unpack-worker.ts', import.meta.url);
    // Loaded for packed files only: it takes as long as reading a small file.
    const threads = process.getBuiltinModule('node:worker_threads');
    this.#worker = new threads.Worker(url, { workerData, execArgv: [] });
    this.#worker.unref();
  }

  /** The thread counts what it took, in KiB. */
  get taken(): number {
    return Math.max(0, Atomics.load(this.#words, 0)) * 1024;
  }

  read(into: Uint8Array, at: number, length: number): number {
    const word = 1 + this.#piece * wordsOfPiece;
    const isLate = Atomics.wait(this.#words, word, unpackState.empty, startPatienceMs) === 'timed-out';
    if (isLate && Atomics.load(this.#words, 0) === notStarted)
      throw new Error('the unpacking thread does not start');
    // Once it runs it says how it ends, however slow the file is.
    Atomics.wait(this.#words, word, unpackState.empty);
    const state = Atomics.load(this.#words, word);
    if (state === unpackState.damaged)
      this.problem = `${this.#path} is damaged or cut: it can't be unpacked to its end.`;
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
    // A thread that still reads would take bytes of the next file that gets this descriptor's number. The end of a thread
    // that reads a pipe is not waited for: the pipe may stay open without bytes.
    if (this.fileBytes > 0) Atomics.wait(this.#words, endedWord, 0, startPatienceMs);
    void this.#worker.terminate();
    this.#plain.close();
  }
}
