/**
 * `sensor read FILE`: what the engine finds in a capture file, as tables for people or as JSON for programs.
 *
 * Whatever could be read goes to standard output with exit code 0, and the rest is said on standard error; exit code
 * 2 is for what is no capture and for link types that nothing here can decode.
 */
import { getDomain } from 'tldts';
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { createReading, isSupportedLinkType, type ReadingResult } from '#sensor/capture/index.ts';
import { type CaptureFile, NotACaptureError, openCaptureFile } from '#sensor/packet-source/capture-file.ts';
import { type FileFacts, renderJson } from './read-json.ts';
import { renderTables } from './read-tables.ts';

const packetsOfPipeMax = 1 << 20;

export interface ReadOptions {
  json?: boolean;
  local?: string[];
}

/** Reads `path`, prints what was found, and answers the exit code. */
export function readFile(path: string, options: ReadOptions): number {
  try {
    const local = parseLocal(options.local ?? []);
    const file = openCaptureFile(path);
    const { facts, result } = readFrames(path, file, local);
    // Whoever reads only the beginning (`| head`) is no failure.
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      process.exit(error.code === 'EPIPE' ? 0 : 1);
    });
    const pieces = options.json ? renderJson(facts, result) : [renderTables(facts, result)];
    for (const piece of pieces) process.stdout.write(piece);
    for (const problem of file.problems) complain(problem);
    return 0;
  } catch (error) {
    if (!(error instanceof NotACaptureError)) throw error;
    complain(error.message);
    return 2;
  }
}

/** What the engine finds in the open file, and the file's own facts. Throws when no link type can be decoded. */
export function readFrames(
  path: string,
  file: CaptureFile,
  local: { prefixes: string[]; addresses: string[] },
): { facts: FileFacts; result: ReadingResult } {
  const reading = createReading({
    registrableDomain: (host) => getDomain(host, { allowPrivateDomains: false }),
    local,
    // The smallest record of a packet is 16 bytes of header and an IP header; a pipe does not tell its size.
    packetsMax: file.size > 0 ? Math.ceil(file.size / 36) : packetsOfPipeMax,
  });
  const facts: FileFacts = { linkType: file.linkTypes[0] ?? null, firstAt: null, lastAt: null };
  const unsupported = new Map<number, number>();
  try {
    if (file.linkTypes.length > 0 && !file.linkTypes.some(isSupportedLinkType))
      throw unsupportedLink(path, file.linkTypes);
    while (file.next()) {
      const { seconds, nanoseconds, linkType } = file;
      reading.observe(file.bytes, file.offset, file.capturedLength, file.wireLength, seconds, linkType);
      noteTime(facts, seconds, nanoseconds);
      if (!isSupportedLinkType(linkType)) unsupported.set(linkType, (unsupported.get(linkType) ?? 0) + 1);
    }
  } finally {
    file.close();
  }
  facts.linkType = file.linkTypes[0] ?? null;
  if (file.linkTypes.length > 0 && !file.linkTypes.some(isSupportedLinkType))
    throw unsupportedLink(path, file.linkTypes);
  for (const [linkType, count] of unsupported) {
    file.problems.push(
      `${count} packets have link type ${linkType}, which is not supported; they count as dropped.`,
    );
  }
  const result = reading.finish();
  if (result.totals.detailTruncated > 0) {
    file.problems.push(
      `${result.totals.detailTruncated} packets found no room in the tables of flows and names.`,
    );
  }
  return { facts, result };
}

function noteTime(facts: FileFacts, seconds: number, nanoseconds: number): void {
  const first = facts.firstAt;
  if (!first || seconds < first.seconds || (seconds === first.seconds && nanoseconds < first.nanoseconds)) {
    facts.firstAt = { seconds, nanoseconds };
  }
  const last = facts.lastAt;
  if (!last) facts.lastAt = { seconds, nanoseconds };
  else if (seconds > last.seconds || (seconds === last.seconds && nanoseconds > last.nanoseconds)) {
    last.seconds = seconds;
    last.nanoseconds = nanoseconds;
  }
}

function unsupportedLink(path: string, linkTypes: readonly number[]): NotACaptureError {
  const types = [...new Set(linkTypes)].join(', ');
  return new NotACaptureError(
    `${path} has link type ${types}, which is not supported. Supported: Ethernet, raw IP, Linux cooked, loopback, NFLOG, 802.11, PPP, Cisco HDLC, FDDI.`,
  );
}

function parseLocal(texts: readonly string[]): { prefixes: string[]; addresses: string[] } {
  const prefixes: string[] = [];
  for (const text of texts) {
    const prefix = parsePrefix(text);
    const address = prefix ? null : canonicalAddress(text);
    if (!prefix && !address)
      throw new NotACaptureError(`--local takes a prefix such as 192.0.2.0/24, not ${JSON.stringify(text)}.`);
    prefixes.push(prefix ? formatPrefix(prefix) : address!);
  }
  return { prefixes, addresses: [] };
}

function complain(sentence: string): void {
  process.stderr.write(`svc sensor read: ${sentence}\n`);
}
