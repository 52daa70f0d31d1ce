/** Passes the frames of capture files through the engine as one capture, ordered by the files' start times. */
import type { getDomain } from 'tldts';
import {
  createReading,
  isSupportedLinkType,
  type Reading,
  type ReadingOptions,
  type ReadingResult,
} from '#sensor/capture/index.ts';
import { type CaptureFile, NotACaptureError } from '#sensor/capture-files/index.ts';
import { type Moment, resolveMoment } from './read-query.ts';
import type { InstantOfFrame } from './text-output.ts';

/**
 * Registrable domains by the pinned public suffix list, loaded with the first name, because many captures have none.
 */
let lookUp: typeof getDomain | null = null;

/** `www.example.co.uk` gives `example.co.uk`; null for an address, a bare suffix or a single label. */
function registrableDomain(host: string): string | null {
  lookUp ??= (
    process.getBuiltinModule('node:module').createRequire(import.meta.url)('tldts') as {
      getDomain: typeof getDomain;
    }
  ).getDomain;
  return lookUp(host, { allowPrivateDomains: false });
}

/** Assumed for a pipe, whose size is unknown. */
const packetsOfPipeMax = 1 << 20;
/** Number of frames between two progress updates, a power of two. */
const progressEvery = 1 << 16;

export interface OpenCapture {
  path: string;
  file: CaptureFile;
}

/** Facts from the file. Times are the earliest and the latest, null without packets that have one. */
export interface FileFacts {
  linkType: number | null;
  firstAt: InstantOfFrame | null;
  lastAt: InstantOfFrame | null;
  /** Number of truncated packets, and the length of the longest. */
  cutFrames: number;
  snapLength: number;
}

export interface FrameOptions
  extends Pick<ReadingOptions, 'local' | 'onAnswer' | 'pageFile' | 'countsUsage'> {
  from?: Moment | null;
  to?: Moment | null;
  /** Receives the counters of each minute. */
  minutes?: MinuteSums | null;
  onProgress?: ((file: CaptureFile, packets: number) => void) | undefined;
}

/** One reading of any number of files, one after the other. */
export class FrameReading {
  readonly #reading: Reading;
  readonly #pass: Pass;
  readonly #fileProblems: string[] = [];
  #firstLinkType: number | null | undefined;

  /** `packetsMax`: about as many packets as all files have at most. */
  constructor(packetsMax: number, options: FrameOptions) {
    const { local, onAnswer, pageFile = null, countsUsage } = options;
    this.#reading = createReading({ registrableDomain, local, packetsMax, onAnswer, pageFile, countsUsage });
    this.#pass = new Pass(this.#reading, options);
  }

  /** Reads a file to its end and closes it. Throws when none of its link types is supported. */
  read({ path, file }: OpenCapture): void {
    try {
      requireSupported(path, file);
      this.#pass.read(file);
      // An interface may be described after the first frames.
      requireSupported(path, file);
    } finally {
      file.close();
    }
    this.#fileProblems.push(...file.problems);
    if (this.#firstLinkType === undefined) this.#firstLinkType = file.linkTypes[0] ?? null;
  }

  /** The engine's results and the files' facts. */
  finish() {
    const result = this.#reading.finish();
    const problems = [...this.#fileProblems, ...this.#pass.problems(), ...whatIsCut(result)];
    return { facts: { ...this.#pass.facts(), linkType: this.#firstLinkType ?? null }, result, problems };
  }
}

/** How many packets a capture of this size has at most. The smallest record has a header of 16 bytes and an IP header. */
export function packetsIn({ size }: Pick<CaptureFile, 'size'>): number {
  return size > 0 ? Math.ceil(size / 36) : packetsOfPipeMax;
}

/** Throws when the file has link types, and none of them is supported. */
export function requireSupported(path: string, { linkTypes }: Pick<CaptureFile, 'linkTypes'>): void {
  if (linkTypes.length === 0 || linkTypes.some(isSupportedLinkType)) return;
  const types = [...new Set(linkTypes)];
  const shown = `${types.slice(0, 5).join(', ')}${types.length > 5 ? ', …' : ''}`;
  throw new NotACaptureError(
    `${path} has link type ${shown}, which is not supported. Supported: Ethernet, raw IP, Linux cooked, loopback, NFLOG, 802.11, PPP, Cisco HDLC, FDDI.`,
  );
}

/** What the lists omit, with counts; nothing when they are complete. */
function whatIsCut({ cut }: ReadingResult): string[] {
  const parts = [
    cut.flows > 0 ? `${cut.flows} flows are not listed` : '',
    cut.applicationPackets > 0
      ? `${cut.applicationPackets} packets (${cut.applicationBytes} bytes) are missing from applications`
      : '',
    cut.conversationPackets > 0
      ? `${cut.conversationPackets} packets (${cut.conversationBytes} bytes) are missing from conversations`
      : '',
    cut.hostPackets > 0 ? `${cut.hostPackets} times an address is missing from hosts` : '',
  ].filter((part) => part !== '');
  const problems = [];
  if (parts.length > 0) {
    problems.push(
      `unanswered single packets are listed up to 16,384 rows a list, the rest is counted in the totals only: ${parts.join('; ')}.`,
    );
  }
  if (cut.names > 0) problems.push(`${cut.names} names found no room: connections may lack a name.`);
  return problems;
}

class Pass {
  readonly #reading: Reading;
  readonly #options: FrameOptions;
  readonly #unsupported = new Map<number, number>();
  #first: InstantOfFrame | null = null;
  #last: InstantOfFrame = { seconds: -1, nanoseconds: 0 };
  #cutFrames = 0;
  #snapLength = 0;
  #fromSeconds = Number.NEGATIVE_INFINITY;
  #toSeconds = Number.POSITIVE_INFINITY;
  #hasSpan = false;
  #frames = 0;
  #outside = 0;
  /** Packets with the time 0, which files have that keep none. */
  #untimed = 0;

  constructor(reading: Reading, options: FrameOptions) {
    this.#reading = reading;
    this.#options = options;
  }

  facts(): Omit<FileFacts, 'linkType'> {
    return {
      firstAt: this.#first,
      lastAt: this.#first && this.#last,
      cutFrames: this.#cutFrames,
      snapLength: this.#snapLength,
    };
  }

  read(file: CaptureFile): void {
    const { onProgress, minutes, from, to } = this.#options;
    const isWhole = !from && !to;
    let linkType = -1;
    let isSupported = true;
    while (file.next()) {
      this.#frames += 1;
      if (onProgress && (this.#frames & (progressEvery - 1)) === 0) onProgress(file, this.#frames);
      if (!isWhole && !this.#isInSpan(file)) {
        this.#outside += 1;
        continue;
      }
      if (file.linkType !== linkType) {
        linkType = file.linkType;
        isSupported = isSupportedLinkType(linkType);
      }
      if (!isSupported) this.#unsupported.set(linkType, (this.#unsupported.get(linkType) ?? 0) + 1);
      if (minutes) this.#observeInMinute(file, minutes);
      else this.#observe(file);
    }
  }

  problems(): string[] {
    const problems = [...this.#unsupported].map(
      ([linkType, count]) =>
        `${count} packets have link type ${linkType}, which is not supported; they count as dropped.`,
    );
    if (this.#outside > 0 && this.#outside === this.#frames)
      problems.push(`All ${this.#frames} packets are outside the requested time span.`);
    if (this.#untimed > 0) problems.push(`${this.#untimed} packets have no time: they are in no minute.`);
    const left = this.#options.minutes?.leftOutPackets ?? 0;
    if (left > 0)
      problems.push(`${left} packets are missing from the minutes: there are too many different minutes.`);
    return problems;
  }

  #observe(file: CaptureFile): void {
    const { seconds, nanoseconds, capturedLength, wireLength } = file;
    this.#reading.observe(file.bytes, file.offset, capturedLength, wireLength, seconds, file.linkType);
    if (capturedLength < wireLength) {
      this.#cutFrames += 1;
      if (capturedLength > this.#snapLength) this.#snapLength = capturedLength;
    }
    const last = this.#last;
    if (seconds === last.seconds && nanoseconds >= last.nanoseconds) last.nanoseconds = nanoseconds;
    else this.#noteTime(seconds, nanoseconds);
  }

  #noteTime(seconds: number, nanoseconds: number): void {
    if (seconds === 0 && nanoseconds === 0) {
      this.#untimed += 1;
      return;
    }
    const first = this.#first;
    const last = this.#last;
    if (!first || seconds < first.seconds || (seconds === first.seconds && nanoseconds < first.nanoseconds))
      this.#first = { seconds, nanoseconds };
    if (!first || seconds > last.seconds || (seconds === last.seconds && nanoseconds > last.nanoseconds)) {
      last.seconds = seconds;
      last.nanoseconds = nanoseconds;
    }
  }

  #observeInMinute(file: CaptureFile, minutes: MinuteSums): void {
    const { totals } = this.#reading;
    const { ipBytes, parserDropped } = totals;
    this.#observe(file);
    if (file.seconds === 0 && file.nanoseconds === 0) return;
    minutes.add(file.seconds, totals.ipBytes - ipBytes, totals.parserDropped - parserDropped);
  }

  #isInSpan(file: CaptureFile): boolean {
    const { from, to } = this.#options;
    const at = file.seconds + file.nanoseconds / 1e9;
    if (!this.#hasSpan) {
      this.#hasSpan = true;
      if (from) this.#fromSeconds = resolveMoment(from, at);
      if (to) this.#toSeconds = resolveMoment(to, at);
    }
    return at >= this.#fromSeconds && at < this.#toSeconds;
  }
}

/**
 * Sums of each UTC minute of a capture. Their number is limited, because damaged times may give any number of minutes.
 */

/** More than a year of minutes. */
const minutesMax = 600_000;

/** Counters of one UTC minute, unix seconds. */
export interface MinuteTotals {
  minute: number;
  packets: number;
  bytes: number;
  parserDropped: number;
}

export class MinuteSums {
  /** Packets of minutes above the limit. */
  leftOutPackets = 0;
  readonly #rows = new Map<number, MinuteTotals>();
  #last: MinuteTotals = { minute: Number.NaN, packets: 0, bytes: 0, parserDropped: 0 };

  add(seconds: number, bytes: number, parserDropped: number): void {
    const minute = Math.floor(seconds / 60) * 60;
    if (minute !== this.#last.minute && !this.#find(minute)) {
      this.leftOutPackets += 1;
      return;
    }
    const sum = this.#last;
    sum.packets += 1;
    sum.bytes += bytes;
    sum.parserDropped += parserDropped;
  }

  get count(): number {
    return this.#rows.size;
  }

  /** In the order of time. */
  rows(): MinuteTotals[] {
    return [...this.#rows.values()].sort((a, b) => a.minute - b.minute);
  }

  #find(minute: number): boolean {
    let sum = this.#rows.get(minute);
    if (!sum) {
      if (this.#rows.size >= minutesMax) return false;
      sum = { minute, packets: 0, bytes: 0, parserDropped: 0 };
      this.#rows.set(minute, sum);
    }
    this.#last = sum;
    return true;
  }
}
