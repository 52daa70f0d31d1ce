/**
 * Reads the server name of a TLS ClientHello as its bytes arrive.
 *
 * The handshake message may be split into any number of TLS records, down to one byte each; the parser skips the record
 * headers. It stops at the server name, which may be in any position among the extensions. Bytes before a parsed
 * extension need not be kept: `resumePoint` says where a later attempt continues, so that a hello of any size fits into
 * a small buffer.
 */
import { normalizeHost } from './name-table.ts';

/** Results of the parser besides a name: it needs more bytes, there is no name, or the data is not a ClientHello. */
export const helloNeedsMore = -1;
export const helloHasNoName = 0;

/** After `helloNeedsMore`: the smallest number of bytes from the start that the next attempt needs. */
export let helloNeeds = 0;

/** After `readServerName`: the message is a ClientHello, with or without a server name. */
export let isClientHello = false;

/** Position at which parsing of a partial hello continues. */
export interface ResumePoint {
  /** Number of bytes from the start that need not be kept; 0 before the first such position. */
  distance: number;
  /** Bytes left in the record, in the extensions, and in the extension that is skipped. */
  recordLeft: number;
  extensionsLeft: number;
  skipLeft: number;
}

/** After `helloNeedsMore`: the position to continue from. */
export const resumePoint: ResumePoint = { distance: 0, recordLeft: 0, extensionsLeft: 0, skipLeft: 0 };

let bytes: Uint8Array = new Uint8Array(0);
let start = 0;
let end = 0;
let at = 0;
let recordLeft = 0;
let skipLeft = 0;
let messageLeft = 0;
let isBad = false;
const nameBytes = new Uint8Array(256);

/**
 * Length of the server name, which is now in the name scratch, or one of the two results above. The caller has checked
 * that the first byte is 0x16.
 */
export function readServerName(source: Uint8Array, from: number, to: number): number {
  begin(source, from, to, 0);
  isClientHello = false;
  return finish(readHello());
}

/** Continues an earlier attempt. */
export function resumeServerName(source: Uint8Array, from: number, to: number, point: ResumePoint): number {
  begin(source, from, to, point.recordLeft);
  isClientHello = true;
  const { extensionsLeft } = point;
  messageLeft = extensionsLeft + point.skipLeft;
  if (!skip(point.skipLeft)) {
    keep(at, extensionsLeft, skipLeft);
    return finish(helloNeedsMore);
  }
  return finish(readExtensions(extensionsLeft));
}

function begin(source: Uint8Array, from: number, to: number, left: number): void {
  bytes = source;
  start = at = from;
  end = to;
  recordLeft = left;
  isBad = false;
  messageLeft = 4;
  resumePoint.distance = 0;
}

function finish(answer: number): number {
  return isBad ? helloHasNoName : answer;
}

function keep(position: number, extensionsLeft: number, left: number): void {
  resumePoint.distance = position - start;
  resumePoint.recordLeft = recordLeft;
  resumePoint.extensionsLeft = extensionsLeft;
  resumePoint.skipLeft = left;
}

function readHello(): number {
  const messageType = next();
  if (messageType >= 0 && messageType !== 1) return helloHasNoName;
  isClientHello = messageType === 1;
  const high = messageType < 0 ? -1 : next();
  const length = high < 0 ? -1 : nextUint16();
  if (length < 0) return helloNeedsMore;
  // Ignore everything beyond the message, even when a length inside points there.
  messageLeft = (high << 16) | length;
  if (!skip(2 + 32)) return helloNeedsMore;
  if (!skip(next())) return helloNeedsMore;
  if (!skip(nextUint16())) return helloNeedsMore;
  if (!skip(next())) return helloNeedsMore;
  const extensions = nextUint16();
  if (extensions < 0) return helloNeedsMore;
  return readExtensions(Math.min(extensions, messageLeft));
}

function readExtensions(length: number): number {
  let extensions = length;
  while (extensions >= 4) {
    keep(at, extensions, 0);
    const type = nextUint16();
    const size = type < 0 ? -1 : nextUint16();
    if (size < 0) return helloNeedsMore;
    extensions -= 4 + size;
    if (type === 0) return readNameList(size);
    if (!skip(size)) {
      keep(at, Math.max(0, extensions), skipLeft);
      return helloNeedsMore;
    }
  }
  return helloHasNoName;
}

/** Reads the first entry of type host_name from the list in the extension. */
function readNameList(extensionLength: number): number {
  let left = nextUint16();
  if (left < 0) return helloNeedsMore;
  if (left > extensionLength - 2) return helloHasNoName;
  while (left >= 3) {
    const type = next();
    const length = type < 0 ? -1 : nextUint16();
    if (length < 0) return helloNeedsMore;
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

/** Next byte of the handshake message. -1 at the end of the data, or when the data is not a handshake. */
function next(): number {
  if (messageLeft === 0) {
    isBad = true;
    return -1;
  }
  if (recordLeft === 0 && !openRecord()) return -1;
  if (at >= end) {
    helloNeeds = end - start + 1;
    return -1;
  }
  recordLeft -= 1;
  messageLeft -= 1;
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

/** Skips bytes of the message. Returns false when some are missing; `skipLeft` says how many. */
function skip(count: number): boolean {
  if (count < 0) return false;
  if (count > messageLeft) {
    isBad = true;
    return false;
  }
  messageLeft -= count;
  skipLeft = count;
  while (skipLeft > 0) {
    if (recordLeft === 0 && !openRecord()) return false;
    const step = Math.min(skipLeft, recordLeft, end - at);
    at += step;
    recordLeft -= step;
    skipLeft -= step;
    if (skipLeft > 0 && recordLeft > 0) {
      helloNeeds = end - start + Math.min(skipLeft, recordLeft);
      return false;
    }
  }
  return true;
}

function openRecord(): boolean {
  if (at + 5 > end) {
    helloNeeds = at + 5 - start;
    // The bytes that have arrived may show that this is not a handshake.
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
