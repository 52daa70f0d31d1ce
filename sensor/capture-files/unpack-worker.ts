/** Thread that decompresses a file for `byte-source.ts`, piece by piece. */
import { once } from 'node:events';
import { workerData } from 'node:worker_threads';
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib';
import {
  closingWord,
  endedWord,
  pieceBytes,
  pieces,
  readOnce,
  type UnpackInput,
  unpackState,
  wordsOfPiece,
} from './unpack-shared.ts';

const { descriptor, head, packing, ...shared } = workerData as UnpackInput;
const words = new Int32Array(shared.words);
const bytes = new Uint8Array(shared.bytes);
let piece = 0;
Atomics.store(words, 0, 0);

const isClosing = () => Atomics.load(words, closingWord) === 1;

function wordOfFreePiece(): number {
  const word = 1 + piece * wordsOfPiece;
  while (!isClosing() && Atomics.load(words, word) === unpackState.full)
    Atomics.wait(words, word, unpackState.full);
  return word;
}

function handOver(word: number, state: number): void {
  Atomics.store(words, word, state);
  Atomics.notify(words, word);
  piece = (piece + 1) % pieces;
}

function put(unpacked: Uint8Array): void {
  for (let at = 0; at < unpacked.length; at += pieceBytes) {
    const part = unpacked.subarray(at, at + pieceBytes);
    const word = wordOfFreePiece();
    if (isClosing()) return;
    bytes.set(part, piece * pieceBytes);
    words[word + 1] = part.length;
    handOver(word, unpackState.full);
  }
}

type Unpacker = Gunzip | ZstdDecompress;

function createUnpacker(): Unpacker {
  const chunkSize = pieceBytes;
  const unpacker = packing === 'gzip' ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize });
  unpacker.on('data', put);
  return unpacker;
}

/**
 * Resolves with the number of consumed bytes: fewer than given at the end of a compressed member, which ends this
 * decompressor.
 */
function write(unpacker: Unpacker, packed: Uint8Array): Promise<number> {
  const before = unpacker.bytesWritten;
  return new Promise((resolve, reject) => {
    const ended = () => resolve(unpacker.bytesWritten - before);
    unpacker.once('error', reject);
    unpacker.once('end', ended);
    unpacker.write(packed, () => {
      unpacker.off('error', reject);
      unpacker.off('end', ended);
      resolve(packed.length);
    });
  });
}

/** Decompresses the file to its end. A file may have several compressed members. */
async function unpackAll(): Promise<void> {
  let unpacker: Unpacker | null = null;
  let taken = 0;
  for (let packed = head; packed.length > 0; packed = readPiece()) {
    taken += packed.length;
    Atomics.store(words, 0, Math.floor(taken / 1024));
    for (let rest = packed; rest.length > 0; ) {
      unpacker ??= createUnpacker();
      const got = await write(unpacker, rest);
      if (got < rest.length) unpacker = null;
      rest = rest.subarray(got);
    }
  }
  if (!unpacker) return;
  const ended = once(unpacker, 'end');
  unpacker.end();
  await ended;
}

function readPiece(): Uint8Array {
  if (isClosing()) throw new Error('the file is being closed');
  const packed = new Uint8Array(pieceBytes);
  return packed.subarray(0, readOnce(descriptor, packed, 0, pieceBytes));
}

try {
  await unpackAll();
  handOver(wordOfFreePiece(), unpackState.end);
} catch {
  handOver(wordOfFreePiece(), unpackState.damaged);
} finally {
  Atomics.store(words, endedWord, 1);
  Atomics.notify(words, endedWord);
}
