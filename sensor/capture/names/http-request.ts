/**
 * Reads the host of an HTTP/1 request, and finds where the next request on the connection starts.
 *
 * The request target overrides `Host` (absolute form, CONNECT); the first of several `Host` lines counts. A request
 * line without a valid version is accepted if it can be nothing else. Lenient parsing is safe: the result only names
 * traffic.
 */
import { findByte, lowerCaseByte, matchesText } from '#common/bytes/index.ts';

/** Result of `readRequest`; one object, overwritten by each call. */
export const request = {
  /** Position of the host, port included; `hostAt` is -1 when no host was seen yet. */
  hostAt: -1,
  hostEnd: -1,
  isConnect: false,
  /** Header bytes, request line included; -1 while the header is not complete. */
  headerLength: -1,
  /** Bytes of body; -1 chunked, -2 unknown. */
  bodyLength: 0,
};

const knownMethods = [
  'get ',
  'post ',
  'head ',
  'put ',
  'delete ',
  'options ',
  'connect ',
  'trace ',
  'patch ',
  'propfind ',
];

const tokenSigns = Uint8Array.from("!#$%&'*+.^`|~", (sign) => sign.charCodeAt(0));

/** Results of `readRequest`. */
export const RequestStatus = { noRequest: 0, needsMore: 1, complete: 2 } as const;

/** Reads the request at `from`. A partial header may already have set the host. */
export function readRequest(bytes: Uint8Array, from: number, end: number): number {
  request.hostAt = request.hostEnd = request.headerLength = -1;
  request.bodyLength = 0;
  request.isConnect = false;
  const lineEnd = findByte(bytes, 0x0a, from, end);
  if (lineEnd < 0)
    return mayBecomeRequest(bytes, from, end) ? RequestStatus.needsMore : RequestStatus.noRequest;
  if (!readRequestLine(bytes, from, trimLine(bytes, from, lineEnd))) return RequestStatus.noRequest;
  const isTargetHost = request.hostAt >= 0;
  let at = lineEnd + 1;
  let isHostOpen = false;
  for (;;) {
    const next = findByte(bytes, 0x0a, at, end);
    if (next < 0) return RequestStatus.needsMore;
    const stop = trimLine(bytes, at, next);
    if (stop === at) break;
    // A line that starts with a blank continues the previous one (obs-fold, RFC 9112).
    if (!isBlank(bytes[at]!)) isHostOpen = readHeaderLine(bytes, at, stop, isTargetHost);
    else if (isHostOpen) isHostOpen = !takeHost(bytes, at, stop);
    at = next + 1;
  }
  request.headerLength = at - from + (bytes[at] === 0x0d ? 2 : 1);
  return RequestStatus.complete;
}

/** True when a request may start here, judged by one line. Used to find a request after a gap. */
export function looksLikeRequest(bytes: Uint8Array, from: number, end: number): boolean {
  const lineEnd = findByte(bytes, 0x0a, from, Math.min(end, from + 4096));
  return lineEnd > 0 && readRequestLine(bytes, from, trimLine(bytes, from, lineEnd));
}

function trimLine(bytes: Uint8Array, from: number, lineEnd: number): number {
  return lineEnd > from && bytes[lineEnd - 1] === 0x0d ? lineEnd - 1 : lineEnd;
}

/** A token, a space and text. Only the end of the line decides whether it is a request. */
function mayBecomeRequest(bytes: Uint8Array, from: number, end: number): boolean {
  const space = methodEnd(bytes, from, end);
  return space === end ? end - from <= 24 : space > 0;
}

/** Index of the space after a method token, `end` when the token reaches it, -1 when it is no token. */
function methodEnd(bytes: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at]!;
    if (byte === 0x20) return at > from && at - from <= 24 ? at : -1;
    if (!isTokenByte(byte)) return -1;
  }
  return end;
}

function readRequestLine(bytes: Uint8Array, from: number, stop: number): boolean {
  request.hostAt = -1;
  const space = methodEnd(bytes, from, stop);
  if (space < 0 || space === stop) return false;
  let target = space + 1;
  while (target < stop && bytes[target] === 0x20) target += 1;
  let targetEnd = findByte(bytes, 0x20, target, stop);
  if (targetEnd < 0) targetEnd = stop;
  if (targetEnd === target) return false;
  if (
    !hasVersion(bytes, target, stop) &&
    !knownMethods.some((text) => matchesText(bytes, from, stop, text))
  ) {
    return false;
  }
  const isConnect = matchesText(bytes, from, stop, 'connect ');
  if (isConnect && bytes[target] !== 0x2f && bytes[target] !== 0x2a) {
    request.isConnect = true;
    request.hostAt = target;
    request.hostEnd = targetEnd;
  } else readAbsoluteForm(bytes, target, targetEnd);
  return true;
}

/** `HTTP/` and a digit anywhere in the rest of the line, even without a space before it. */
function hasVersion(bytes: Uint8Array, from: number, stop: number): boolean {
  for (let at = stop - 6; at >= from; at -= 1) {
    if (bytes[at] === 0x48 && matchesText(bytes, at, stop, 'http/')) return bytes[at + 5]! >> 4 === 3;
  }
  return false;
}

function readAbsoluteForm(bytes: Uint8Array, target: number, targetEnd: number): void {
  let authority = -1;
  if (matchesText(bytes, target, targetEnd, 'http://')) authority = target + 7;
  else if (matchesText(bytes, target, targetEnd, 'https://')) authority = target + 8;
  else if (matchesText(bytes, target, targetEnd, 'ftp://')) authority = target + 6;
  if (authority < 0) return;
  let stop = authority;
  for (; stop < targetEnd; stop += 1) {
    const byte = bytes[stop];
    if (byte === 0x2f || byte === 0x3f || byte === 0x23) break;
    if (byte === 0x40) authority = stop + 1;
  }
  if (stop === authority) return;
  request.hostAt = authority;
  request.hostEnd = stop;
}

/** True for a `Host` line without a value, which may follow on the next line. */
function readHeaderLine(bytes: Uint8Array, at: number, stop: number, isTargetHost: boolean): boolean {
  const first = lowerCaseByte(bytes[at]!);
  if (first === 0x68 && !isTargetHost && request.hostAt < 0 && matchesText(bytes, at, stop, 'host')) {
    let colon = at + 4;
    while (colon < stop && isBlank(bytes[colon]!)) colon += 1;
    return bytes[colon] === 0x3a && colon < stop && !takeHost(bytes, colon + 1, stop);
  }
  if (first === 0x63 && matchesText(bytes, at, stop, 'content-length:')) {
    if (request.bodyLength >= 0) request.bodyLength = readDecimal(bytes, at + 15, stop);
  } else if (first === 0x74 && matchesText(bytes, at, stop, 'transfer-encoding:')) {
    if (containsText(bytes, at + 18, stop, 'chunked')) request.bodyLength = -1;
  } else if (first === 0x75 && matchesText(bytes, at, stop, 'upgrade:')) {
    request.bodyLength = -2;
  }
  return false;
}

/** Stores the text between the blanks as the host. Returns false when there is none. */
function takeHost(bytes: Uint8Array, at: number, stop: number): boolean {
  let from = at;
  let end = stop;
  while (from < end && isBlank(bytes[from]!)) from += 1;
  while (end > from && isBlank(bytes[end - 1]!)) end -= 1;
  if (end === from) return false;
  request.hostAt = from;
  request.hostEnd = end;
  return true;
}

/** Letters, digits and the other characters of a token (RFC 9110). */
function isTokenByte(byte: number): boolean {
  const letter = byte | 0x20;
  if ((letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39)) return true;
  return byte === 0x2d || byte === 0x5f || tokenSigns.includes(byte);
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09;
}

function readDecimal(bytes: Uint8Array, from: number, stop: number): number {
  let value = 0;
  for (let at = from; at < stop; at += 1) {
    const byte = bytes[at]!;
    if (byte >= 0x30 && byte <= 0x39) value = value * 10 + byte - 0x30;
    else if (!isBlank(byte)) return -2;
  }
  return value <= 0x3fffffff ? value : -2;
}

function containsText(bytes: Uint8Array, from: number, stop: number, text: string): boolean {
  for (let at = from; at + text.length <= stop; at += 1) if (matchesText(bytes, at, stop, text)) return true;
  return false;
}
