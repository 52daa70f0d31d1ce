/**
 * The server name of a TLS ClientHello, read as far as it has arrived.
 *
 * The handshake message may be cut into any number of TLS records, down to one byte each; the reader walks over the
 * record headers as if they were not there. It stops at the server name, wherever the extension stands.
 */
import { normalizeHost } from './name-table.ts';

/** What a parser says when it needs more bytes, found nothing and will not, or found that this is something else. */
export const helloNeedsMore = -1;
export const helloHasNoName = 0;

/** After `helloNeedsMore`: how many bytes from the start the next attempt needs at least. */
export let helloNeeds = 0;

/** After `readServerName`: the message is a ClientHello, named or not. */
export let isClientHello = false;

let bytes: Uint8Array = new Uint8Array(0);
let start = 0;
let end = 0;
let at = 0;
let recordLeft = 0;
let isBad = false;
const nameBytes = new Uint8Array(256);

/**
 * Length of the server name, now in the name scratch, or one of the two answers above. The caller has seen that the
 * first byte is 0x16.
 */
export function readServerName(source: Uint8Array, from: number, to: number): number {
  bytes = source;
  start = at = from;
  end = to;
  recordLeft = 0;
  isBad = isClientHello = false;
  const length = readHello();
  if (isBad) return helloHasNoName;
  return length;
}

function readHello(): number {
  const messageType = next();
  if (messageType >= 0 && messageType !== 1) return helloHasNoName;
  isClientHello = messageType === 1;
  if (messageType < 0 || !skip(3 + 2 + 32)) return helloNeedsMore;
  if (!skip(next())) return helloNeedsMore;
  if (!skip(nextUint16())) return helloNeedsMore;
  if (!skip(next())) return helloNeedsMore;
  let extensions = nextUint16();
  if (extensions < 0) return helloNeedsMore;
  while (extensions >= 4) {
    const type = nextUint16();
    const length = nextUint16();
    if (type < 0 || length < 0) return helloNeedsMore;
    extensions -= 4 + length;
    if (type === 0) return readNameList(length);
    if (!skip(length)) return helloNeedsMore;
  }
  return helloHasNoName;
}

/** The first entry of type host_name in the extension's list. */
function readNameList(extensionLength: number): number {
  let left = nextUint16();
  if (left < 0) return helloNeedsMore;
  if (left > extensionLength - 2) return helloHasNoName;
  while (left >= 3) {
    const type = next();
    const length = nextUint16();
    if (type < 0 || length < 0) return helloNeedsMore;
    left -= 3 + length;
    if (left < 0) return helloHasNoName;
    if (type !== 0) {
      if (!skip(length)) return helloNeedsMore;
      continue;
    }
    if (length > 255) return helloHasNoName;
    for (let i = 0; i < length; i += 1) {
      const byte = next();
      if (byte < 0) return helloNeedsMore;
      nameBytes[i] = byte;
    }
    return nameBytes[0] === 0x5b ? helloHasNoName : normalizeHost(nameBytes, 0, length);
  }
  return helloHasNoName;
}

/** The next byte of the handshake message, -1 at the end of what there is or at something that is no handshake. */
function next(): number {
  if (recordLeft === 0 && !openRecord()) return -1;
  if (at >= end) {
    helloNeeds = end - start + 1;
    return -1;
  }
  recordLeft -= 1;
  const byte = bytes[at]!;
  at += 1;
  return byte;
}

function nextUint16(): number {
  const high = next();
  if (high < 0) return -1;
  const low = next();
  return low < 0 ? -1 : (high << 8) | low;
}

function skip(count: number): boolean {
  if (count < 0) return false;
  let left = count;
  while (left > 0) {
    if (recordLeft === 0 && !openRecord()) return false;
    const step = Math.min(left, recordLeft);
    at += step;
    recordLeft -= step;
    left -= step;
    if (at > end) {
      helloNeeds = at - start;
      return false;
    }
  }
  return true;
}

function openRecord(): boolean {
  if (at + 5 > end) {
    helloNeeds = at + 5 - start;
    // What is there already may show that this is no handshake.
    isBad = at < end && bytes[at] !== 0x16;
    return false;
  }
  const length = (bytes[at + 3]! << 8) | bytes[at + 4]!;
  if (bytes[at] !== 0x16 || bytes[at + 1] !== 3 || length === 0 || length > 16640) {
    isBad = true;
    return false;
  }
  recordLeft = length;
  at += 5;
  return true;
}
