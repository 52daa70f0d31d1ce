/** Replays a capture file through the attack detector, with the file's own clock. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { classesOfMissingAnswers } from '#contracts/attack-classes.ts';
import { isSupportedLinkType } from '#sensor/capture/index.ts';
import { type CaptureFile, NotACaptureError, openCaptureFile } from '#sensor/capture-files/index.ts';
import {
  Detector,
  type DetectorResult,
  defaultThresholds,
  parseThresholds,
  ThresholdError,
  type Thresholds,
} from '#sensor/detector/index.ts';
import { type Detection, detectionJson, detectionLines } from './detect-answer.ts';
import { createProgress, type Progress, type ReadScreen } from './read-files.ts';
import { requireSupported } from './read-frames.ts';
import { type InstantOfFrame, OutputClosedError } from './text-output.ts';

export interface DetectOptions {
  json?: boolean;
  /** Protected prefixes and addresses; without any, every address that receives is protected. */
  protect?: string[];
  /** Path of a threshold file. */
  thresholds?: string;
  /** Speed of the recorded link, such as 10G. */
  linkSpeed?: string;
  /** Also says why each incident is one, and why the largest other traffic is none. */
  explain?: boolean;
}

/** An IP packet that is longer than a jumbo frame was merged by offload. */
const frameBytesMax = 9240;
const progressEvery = 1 << 16;

/** Prints the incidents of a capture file and returns the exit code: 2 for invalid options and unreadable files. */
export async function detectFile(path: string, options: DetectOptions, screen: ReadScreen): Promise<number> {
  try {
    const prefixes = (options.protect ?? []).map(protectedPrefix);
    const scope = prefixes.length > 0 ? { prefixes, addresses: [] } : null;
    const thresholds = readThresholds(options.thresholds);
    const linkBps = readLinkSpeed(options.linkSpeed);
    if (linkBps !== null && scope === null)
      throw new NotACaptureError(
        '--link-speed needs --protect with the prefixes behind the link: without them packets of both directions count as received.',
      );
    const capture = { name: captureName(path), linkBps: () => linkBps };
    const { explain: explains = false } = options;
    const detector = new Detector({ scope, thresholds, capture, explains });
    const progress = createProgress(screen.terminal);
    const detection = replay(path, detector, progress);
    progress?.clear();
    if (options.json) screen.out.write(detectionJson(detection, explains));
    else for (const line of detectionLines(detection, screen.look, explains)) screen.out.write(`${line}\n`);
    screen.out.end();
    for (const problem of detection.problems) screen.complain(problem);
    return 0;
  } catch (error) {
    if (error instanceof OutputClosedError) return 0;
    if (!(error instanceof NotACaptureError)) throw error;
    screen.complain(error.message);
    return 2;
  }
}

function replay(path: string, detector: Detector, progress: Progress | null): Detection {
  const file = openCaptureFile(path);
  let packets = 0;
  let truncated = 0;
  let firstAt: InstantOfFrame | null = null;
  let lastAt: InstantOfFrame | null = null;
  const unsupported = new Map<number, number>();
  const repeated = new RepeatedPackets();
  try {
    requireSupported(path, file);
    while (file.next()) {
      packets += 1;
      if (progress && (packets & (progressEvery - 1)) === 0) progress.show(file, packets);
      const { seconds, nanoseconds, linkType } = file;
      if (!firstAt || isBefore(file, firstAt)) firstAt = { seconds, nanoseconds };
      if (!lastAt) lastAt = { seconds, nanoseconds };
      else if (!isBefore(file, lastAt)) [lastAt.seconds, lastAt.nanoseconds] = [seconds, nanoseconds];
      if (file.capturedLength < file.wireLength) truncated += 1;
      if (!isSupportedLinkType(linkType)) unsupported.set(linkType, (unsupported.get(linkType) ?? 0) + 1);
      if (!repeated.has(file)) observe(detector, file);
    }
    requireSupported(path, file);
  } finally {
    file.close();
  }
  const result = detector.finish();
  const links = file.linkTypes.length;
  const hasNoTimes = packets > 1 && lastAt !== null && lastAt.seconds === 0 && lastAt.nanoseconds === 0;
  const problems = [
    ...file.problems,
    ...[...unsupported].map(
      ([type, count]) =>
        `${count} packets have link type ${type}, which is not supported; they were not judged.`,
    ),
    ...(links > 1
      ? [
          `The file has ${links} interfaces, which were judged together: a packet that several of them recorded counts several times. Judge one interface alone to be exact.`,
        ]
      : []),
    ...(repeated.count > 0
      ? [
          `The file was recorded on several interfaces at once: ${repeated.count} packets that another one had recorded already were not counted again.`,
        ]
      : []),
    ...(hasNoTimes ? ['The packets have no times, so their rates are unknown.'] : []),
    ...(truncated > 0
      ? [`${truncated} packets are truncated; they count with the length that their headers state.`]
      : []),
    ...problemsOf(result),
  ];
  const isWhole = file.problems.length === 0 && unsupported.size === 0 && links <= 1 && !hasNoTimes;
  const times = hasNoTimes ? { firstAt: null, lastAt: null } : { firstAt, lastAt };
  return { packets, ...times, result, isWhole, problems };
}

function observe(detector: Detector, file: CaptureFile): void {
  const { bytes, offset, capturedLength, wireLength, seconds, nanoseconds, linkType } = file;
  const segments = wireLength > frameBytesMax ? 0 : 1;
  detector.observe(bytes, offset, capturedLength, wireLength, seconds, nanoseconds, linkType, segments);
}

function problemsOf({
  gaps,
  overflowed,
  mergedFrames,
  seesOneDirection,
  incidentsLost,
}: DetectorResult): string[] {
  return [
    gaps > 0
      ? `The times of the packets have ${gaps} gaps of more than 10 seconds or steps back; what happened there is unknown, and no incident recovered in them.`
      : '',
    overflowed > 0
      ? `${overflowed} packets belong to addresses for which there was no room; they were judged by their prefixes only. Name fewer addresses with --protect.`
      : '',
    mergedFrames > 0
      ? `${mergedFrames} frames were merged by offload out of an unknown number of packets: thresholds in bytes were judged, thresholds in packets only by the packets that there were at least. Record with offload disabled: ethtool -K INTERFACE gro off lro off tso off gso off.`
      : '',
    seesOneDirection
      ? `For its last minute the file has packets of one direction only: floods that are told by missing answers (${classesOfMissingAnswers.join(', ')}) are of severity info there.`
      : '',
    incidentsLost > 0 ? `${incidentsLost} further incidents are not listed.` : '',
  ].filter((problem) => problem !== '');
}

function isBefore(a: InstantOfFrame, b: InstantOfFrame): boolean {
  return a.seconds < b.seconds || (a.seconds === b.seconds && a.nanoseconds < b.nanoseconds);
}

function protectedPrefix(text: string): string {
  const prefix = parsePrefix(text);
  if (prefix) return formatPrefix(prefix);
  const [address = '', length = ''] = text.split('/');
  const hasHostBits = canonicalAddress(address) !== null && /^\d{1,3}$/.test(length);
  throw new NotACaptureError(
    hasHostBits
      ? `--protect ${text} is not a prefix: its length is too large, or bits after it are not zero. For one address write ${address}.`
      : `--protect takes an address or a prefix such as 192.0.2.0/24 or 2001:db8::/48, not ${JSON.stringify(text)}.`,
  );
}

/** The file's name, as long as the name of a target may be. */
function captureName(path: string): string {
  return path === '-' ? 'standard input' : basename(path).slice(0, 64);
}

const factors: Readonly<Record<string, number>> = { '': 1, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };

function readLinkSpeed(text: string | undefined): number | null {
  if (text === undefined) return null;
  const [, number = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,3})?)([KMGT]?)$/i.exec(text) ?? [];
  const bps = Number(number) * factors[unit.toUpperCase()]!;
  if (bps >= 1) return bps;
  throw new NotACaptureError(
    `--link-speed takes bits a second, such as 1G, 2.5G or 100M, not ${JSON.stringify(text)}.`,
  );
}

function readThresholds(path: string | undefined): Thresholds {
  if (path === undefined) return defaultThresholds;
  try {
    return parseThresholds(readFileSync(path, 'utf8'));
  } catch (error) {
    if (error instanceof ThresholdError) throw new NotACaptureError(`--thresholds ${path}: ${error.message}`);
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new NotACaptureError(`--thresholds ${path} can not be read (${code}).`);
  }
}

// Finds packets that a capture of all interfaces recorded more than once: as they passed a guest's port, a bridge and the uplink. The
// first interface on which a packet is seen is the one that counts.
//
// A packet is known again by its bytes but for what routers change. Two generations of as many packets are remembered.

/** Linux cooked capture, version 2: the interface's number is at 4, and the IP packet after 20 bytes. */
const cooked2 = 276;
const interfaceAt = 4;
const headerBytes = 20;
const comparedBytes = 64;
const rememberedPackets = 4096;

class RepeatedPackets {
  /** Packets that were seen before on another interface. */
  count = 0;
  /** By hash, the interface on which it was first seen. */
  #now = new Map<number, number>();
  #before = new Map<number, number>();

  /** True for a packet that another interface has recorded already. */
  has({ bytes, offset, capturedLength, linkType }: CaptureFile): boolean {
    if (linkType !== cooked2 || capturedLength <= headerBytes) return false;
    const view = new DataView(bytes.buffer, bytes.byteOffset + offset, capturedLength);
    const one = view.getUint32(interfaceAt);
    const hash = hashOf(view);
    const first = this.#now.get(hash) ?? this.#before.get(hash);
    if (first !== undefined && first !== one) {
      this.count += 1;
      return true;
    }
    if (this.#now.size >= rememberedPackets) [this.#before, this.#now] = [this.#now, new Map()];
    this.#now.set(hash, one);
    return false;
  }
}

/** FNV-1a over the beginning of the IP packet, without hop limit and checksum. */
function hashOf(view: DataView): number {
  const isIpv4 = view.getUint8(headerBytes) >> 4 === 4;
  const end = Math.min(view.byteLength, headerBytes + comparedBytes);
  let hash = 0x811c9dc5;
  for (let at = headerBytes; at < end; at += 1) {
    const place = at - headerBytes;
    const isChanged = isIpv4 ? place === 8 || place === 10 || place === 11 : place === 7;
    hash = Math.imul(hash ^ (isChanged ? 0 : view.getUint8(at)), 0x01000193);
  }
  return hash;
}
