/**
 * Parses what a client says on a TCP connection, unit by unit: a TLS hello, an HTTP request, or a preamble before one
 * of them (STARTTLS lines, PostgreSQL, MySQL and LDAP upgrade requests, RDP, SOCKS, PROXY).
 *
 * A unit is read from contiguous bytes. The result is the distance by which the stream advances, possibly beyond the
 * received data, and its next mode; or that more bytes are needed; or that reading ends.
 */
import { findByte, matchesText, readInt32, readUint16 } from '#common/bytes/index.ts';
import {
  helloNeeds,
  helloNeedsMore,
  isClientHello,
  type ResumePoint,
  readServerName,
  resumeServerName,
} from './client-hello.ts';
import { RequestStatus, readRequest, request } from './http-request.ts';
import { normalizeHost } from './name-table.ts';

/** What a stream expects next. `unseen` is zero, the value in a new record. */
export const Mode = {
  unseen: 0,
  done: 1,
  fresh: 2,
  request: 3,
  chunk: 4,
  trailer: 5,
  resync: 6,
  lines: 7,
  socks: 8,
  dns: 9,
  /** In a hello that is larger than a buffer. */
  hello: 10,
} as const;

/** Results of `readUnit` besides a distance. */
export const unitNeedsMore = -1;
export const unitEnds = -2;

/** Kinds of name evidence, as stored in flow records, weakest first. */
export const Evidence = { none: 0, dns: 1, outer: 2, connect: 3, host: 4, sni: 5 } as const;

/** Further results of the last `readUnit`. */
export const unit = {
  mode: Mode.done as number,
  evidence: Evidence.none as number,
  /** Length of the name in the scratch, 0 for none. */
  nameLength: 0,
  /** True when the sender is the client, with or without a name. */
  isClient: false,
  /** After `unitNeedsMore`: bytes from the unit's start that the next attempt needs at least. */
  needs: 0,
  /** After `unitNeedsMore`: the next attempt needs a line feed. */
  needsLine: false,
  /** Position at which a hello continues; set before a call in `Mode.hello`. */
  point: { distance: 0, recordLeft: 0, extensionsLeft: 0, skipLeft: 0 } as ResumePoint,
};

/** Reads one unit at `from`. */
export function readUnit(mode: number, bytes: Uint8Array, from: number, end: number): number {
  unit.nameLength = 0;
  unit.isClient = false;
  unit.needs = end - from + 1;
  unit.needsLine = false;
  switch (mode) {
    case Mode.fresh:
      return readFresh(bytes, from, end);
    case Mode.request:
      return readNextRequest(bytes, from, end);
    case Mode.chunk:
      return readChunk(bytes, from, end);
    case Mode.trailer:
      return readTrailer(bytes, from, end);
    case Mode.lines:
      return bytes[from] === 0x16 ? readHelloUnit(bytes, from, end) : readLine(bytes, from, end);
    case Mode.socks:
      return readSocks(bytes, from, end);
    case Mode.hello:
      return finishHello(resumeServerName(bytes, from, end, unit.point));
    default:
      return unitEnds;
  }
}

function advance(distance: number, mode: number): number {
  unit.mode = mode;
  return distance;
}

function needs(length: number): number {
  unit.needs = length;
  return unitNeedsMore;
}

function readFresh(bytes: Uint8Array, from: number, end: number): number {
  const first = bytes[from]!;
  const length = end - from;
  if (first === 0x16) return readHelloUnit(bytes, from, end);
  if (first >= 0x20 && first < 0x7f && first !== 0x30 && first !== 0x20) return readText(bytes, from, end);
  if (first === 0x05) {
    return length < 2 ? needs(2) : advance(2 + bytes[from + 1]!, Mode.socks);
  }
  if (first === 0x04) return readSocks4(bytes, from, end);
  if (first === 0x00 || first === 0x20) return readDatabasePreamble(bytes, from, end);
  if (first === 0x03) {
    if (length < 4) return needs(4);
    return bytes[from + 1] === 0 ? advance(Math.max(4, readUint16(bytes, from + 2)), Mode.fresh) : unitEnds;
  }
  if (first === 0x30) return readLdap(bytes, from, end);
  if (first === 0x0d) return readProxyTwo(bytes, from, end);
  if (first === 0x0a) return readLineFeed(bytes, from, end);
  return unitEnds;
}

function readHelloUnit(bytes: Uint8Array, from: number, end: number): number {
  return finishHello(readServerName(bytes, from, end));
}

function finishHello(answer: number): number {
  unit.isClient = isClientHello;
  if (answer === helloNeedsMore) return needs(helloNeeds);
  if (answer > 0) {
    unit.nameLength = answer;
    unit.evidence = Evidence.sni;
  }
  return unitEnds;
}

function readText(bytes: Uint8Array, from: number, end: number): number {
  if (matchesText(bytes, from, end, 'http/')) return unitEnds;
  const status = readRequest(bytes, from, end);
  if (status !== RequestStatus.noRequest) return finishRequest(bytes, status);
  return matchesText(bytes, from, end, 'proxy ')
    ? readLine(bytes, from, end, Mode.fresh)
    : readLine(bytes, from, end);
}

/** One line of a text protocol (or one XML tag) that may lead to a STARTTLS. */
function readLine(bytes: Uint8Array, from: number, end: number, next: number = Mode.lines): number {
  const first = bytes[from]!;
  if (first === 0x3c) {
    const close = findByte(bytes, 0x3e, from, end);
    return close < 0 ? unitNeedsMore : advance(close + 1 - from, Mode.lines);
  }
  const lineEnd = findByte(bytes, 0x0a, from, end);
  const stop = lineEnd < 0 ? end : lineEnd;
  for (let at = from; at < stop; at += 1) {
    const byte = bytes[at]!;
    if ((byte < 0x20 && byte !== 0x0d && byte !== 0x09) || byte === 0x7f) return unitEnds;
  }
  if (lineEnd >= 0) return advance(lineEnd + 1 - from, next);
  unit.needsLine = true;
  return end - from > 1024 ? unitEnds : unitNeedsMore;
}

function readNextRequest(bytes: Uint8Array, from: number, end: number): number {
  if (bytes[from] === 0x0d || bytes[from] === 0x0a) return advance(1, Mode.request);
  const status = readRequest(bytes, from, end);
  return status === RequestStatus.noRequest ? advance(0, Mode.resync) : finishRequest(bytes, status);
}

function finishRequest(bytes: Uint8Array, status: number): number {
  if (request.hostAt >= 0) {
    unit.nameLength = normalizeHost(bytes, request.hostAt, request.hostEnd);
    unit.evidence = request.isConnect ? Evidence.connect : Evidence.host;
  }
  unit.isClient = status === RequestStatus.complete || unit.nameLength > 0;
  if (status === RequestStatus.needsMore) {
    unit.needsLine = true;
    return unitNeedsMore;
  }
  if (request.isConnect) return advance(request.headerLength, Mode.fresh);
  if (request.bodyLength === -1) return advance(request.headerLength, Mode.chunk);
  if (request.bodyLength === -2) return advance(request.headerLength, Mode.resync);
  return advance(request.headerLength + request.bodyLength, Mode.request);
}

function readChunk(bytes: Uint8Array, from: number, end: number): number {
  const lineEnd = findByte(bytes, 0x0a, from, end);
  if (lineEnd < 0) {
    unit.needsLine = true;
    return end - from > 256 ? advance(0, Mode.resync) : unitNeedsMore;
  }
  let size = 0;
  let at = from;
  for (; at < lineEnd; at += 1) {
    const digit = Number.parseInt(String.fromCharCode(bytes[at]!), 16);
    if (Number.isNaN(digit)) break;
    size = size * 16 + digit;
  }
  if (at === from || size > 0x3fffffff) return advance(0, Mode.resync);
  const header = lineEnd + 1 - from;
  return size === 0 ? advance(header, Mode.trailer) : advance(header + size + 2, Mode.chunk);
}

function readTrailer(bytes: Uint8Array, from: number, end: number): number {
  const lineEnd = findByte(bytes, 0x0a, from, end);
  if (lineEnd < 0) {
    unit.needsLine = true;
    return end - from > 1024 ? advance(0, Mode.resync) : unitNeedsMore;
  }
  const isBlankLine = lineEnd === from || (lineEnd === from + 1 && bytes[from] === 0x0d);
  return advance(lineEnd + 1 - from, isBlankLine ? Mode.request : Mode.trailer);
}

function readSocks(bytes: Uint8Array, from: number, end: number): number {
  const length = end - from;
  if (bytes[from] === 0x01) {
    // User name and password (RFC 1929).
    if (length < 2) return needs(2);
    const user = bytes[from + 1]!;
    if (length < user + 3) return needs(user + 3);
    return advance(user + 3 + bytes[from + 2 + user]!, Mode.socks);
  }
  if (bytes[from] !== 0x05) return unitEnds;
  if (length < 5) return needs(5);
  const kind = bytes[from + 3];
  if (kind === 1) return advance(10, Mode.fresh);
  if (kind === 4) return advance(22, Mode.fresh);
  return kind === 3 ? advance(7 + bytes[from + 4]!, Mode.fresh) : unitEnds;
}

function readSocks4(bytes: Uint8Array, from: number, end: number): number {
  if (end - from < 9) return needs(9);
  if (bytes[from + 1] !== 1 && bytes[from + 1] !== 2) return unitEnds;
  const userEnd = findByte(bytes, 0, from + 8, end);
  if (userEnd < 0) return end - from > 512 ? unitEnds : unitNeedsMore;
  const isNamed = readInt32(bytes, from + 4) >>> 8 === 0 && bytes[from + 7] !== 0;
  if (!isNamed) return advance(userEnd + 1 - from, Mode.fresh);
  const hostEnd = findByte(bytes, 0, userEnd + 1, end);
  if (hostEnd < 0) return end - from > 1024 ? unitEnds : unitNeedsMore;
  return advance(hostEnd + 1 - from, Mode.fresh);
}

/** PostgreSQL's SSLRequest and GSSENCRequest, MySQL's SSLRequest. */
function readDatabasePreamble(bytes: Uint8Array, from: number, end: number): number {
  const length = end - from;
  if (bytes[from] === 0x00) {
    if (length < 8) return bytes[from + 1] === 0 || length < 2 ? needs(8) : unitEnds;
    const code = readInt32(bytes, from + 4);
    const isUpgrade = readInt32(bytes, from) === 8 && (code === 0x04d2162f || code === 0x04d21630);
    return isUpgrade ? advance(8, Mode.fresh) : unitEnds;
  }
  if (length < 6) return needs(6);
  const isLogin = readInt32(bytes, from) === 0x20000001 && (bytes[from + 5]! & 0x08) !== 0;
  return isLogin ? advance(36, Mode.fresh) : unitEnds;
}

/** One LDAP message; the data after it shows whether it was StartTLS. */
function readLdap(bytes: Uint8Array, from: number, end: number): number {
  if (end - from < 6) return needs(6);
  const short = bytes[from + 1]!;
  let header = 2;
  let length = short;
  if (short >= 0x80) {
    const count = short & 0x7f;
    if (count === 0 || count > 3) return unitEnds;
    header += count;
    length = 0;
    for (let i = 0; i < count; i += 1) length = (length << 8) | bytes[from + 2 + i]!;
  }
  return bytes[from + header] === 0x02 ? advance(header + length, Mode.fresh) : unitEnds;
}

const proxySignature = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];

/** Blank lines before a request are allowed, and a bare line feed ends a line too (RFC 9112 2.2). */
function readLineFeed(bytes: Uint8Array, from: number, end: number): number {
  if (end - from < 2) return needs(2);
  return maySkipTo(bytes[from + 1]!) ? advance(1, Mode.fresh) : unitEnds;
}

const maySkipTo = (byte: number) => byte >= 0x20 || byte === 0x0a || byte === 0x0d;

function readProxyTwo(bytes: Uint8Array, from: number, end: number): number {
  for (let i = 0; i < proxySignature.length && from + i < end; i += 1) {
    if (bytes[from + i] !== proxySignature[i]) {
      const maySkip = i > 0 && i <= 4 && maySkipTo(bytes[from + i]!);
      return maySkip ? advance(i, Mode.fresh) : unitEnds;
    }
  }
  if (end - from < 16) return needs(16);
  return advance(16 + readUint16(bytes, from + 14), Mode.fresh);
}
