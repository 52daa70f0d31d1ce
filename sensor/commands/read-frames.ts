/** Runs the frames of capture files through the engine, as one capture, in the order of their beginnings. */
import { getDomain } from 'tldts';
import {
  createReading,
  isSupportedLinkType,
  type Reading,
  type ReadingResult,
} from '#sensor/capture/index.ts';
import { type CaptureFile, NotACaptureError } from '#sensor/packet-source/capture-file.ts';
import type { FileFacts, MinuteTotals } from './read-json.ts';
import { type Moment, resolveMoment } from './read-query.ts';

/** Of a pipe, which does not tell its size. */
const packetsOfPipeMax = 1 << 20;
/** Frames between two looks at the progress. */
const progressEvery = 1 << 16;

export interface OpenCapture {
  path: string;
  file: CaptureFile;
}

export interface FrameOptions {
  local: { prefixes: string[]; addresses: string[] };
  from?: Moment | null;
  to?: Moment | null;
  /** Whether totals of each minute are wanted. */
  wantsMinutes?: boolean;
  onProgress?(file: CaptureFile, packets: number): void;
}

export interface FramesRead {
  facts: FileFacts;
  result: ReadingResult;
  minutes: MinuteTotals[];
  problems: string[];
}

/** What the engine finds in the files, and their own facts. Closes them. Throws when no link type can be decoded. */
export function readFrames(captures: readonly OpenCapture[], options: FrameOptions): FramesRead {
  const reading = createReading({
    registrableDomain: (host) => getDomain(host, { allowPrivateDomains: false }),
    local: options.local,
    packetsMax: captures.reduce((sum, { file }) => sum + packetsIn(file), 0),
  });
  const pass = new Pass(reading, options);
  for (const { path, file } of captures) {
    try {
      requireSupported(path, file);
      pass.read(file);
      // An interface may be described after the first frames.
      requireSupported(path, file);
    } finally {
      file.close();
    }
  }
  const result = reading.finish();
  const problems = [...captures.flatMap(({ file }) => file.problems), ...pass.problems()];
  if (result.totals.detailTruncated > 0)
    problems.push(
      `${result.totals.detailTruncated} packets brought more flows or names than there is room for: totals count them, some names may be missing.`,
    );
  const facts = { ...pass.facts, linkType: captures[0]?.file.linkTypes[0] ?? null };
  return { facts, result, minutes: pass.minutes(), problems };
}

/** The smallest record of a packet is 16 bytes of header and an IP header. */
function packetsIn(file: CaptureFile): number {
  return file.size > 0 ? Math.ceil(file.size / 36) : packetsOfPipeMax;
}

function requireSupported(path: string, { linkTypes }: CaptureFile): void {
  if (linkTypes.length === 0 || linkTypes.some(isSupportedLinkType)) return;
  const types = [...new Set(linkTypes)].join(', ');
  throw new NotACaptureError(
    `${path} has link type ${types}, which is not supported. Supported: Ethernet, raw IP, Linux cooked, loopback, NFLOG, 802.11, PPP, Cisco HDLC, FDDI.`,
  );
}

class Pass {
  readonly facts: FileFacts = { linkType: null, firstAt: null, lastAt: null, cutFrames: 0, snapLength: 0 };
  readonly #reading: Reading;
  readonly #options: FrameOptions;
  readonly #unsupported = new Map<number, number>();
  readonly #minutes = new Map<number, MinuteTotals>();
  #fromSeconds = Number.NEGATIVE_INFINITY;
  #toSeconds = Number.POSITIVE_INFINITY;
  #hasSpan = false;
  #frames = 0;
  #outside = 0;

  constructor(reading: Reading, options: FrameOptions) {
    this.#reading = reading;
    this.#options = options;
  }

  read(file: CaptureFile): void {
    const { onProgress, wantsMinutes } = this.#options;
    while (file.next()) {
      this.#frames += 1;
      if (onProgress && this.#frames % progressEvery === 0) onProgress(file, this.#frames);
      if (!this.#isInSpan(file)) this.#outside += 1;
      else if (wantsMinutes) this.#observeInMinute(file);
      else this.#observe(file);
    }
  }

  problems(): string[] {
    const problems = [...this.#unsupported].map(
      ([linkType, count]) =>
        `${count} packets have link type ${linkType}, which is not supported; they count as dropped.`,
    );
    if (this.#outside > 0 && this.#outside === this.#frames)
      problems.push(`All ${this.#frames} packets lie outside the span of time that was asked for.`);
    return problems;
  }

  minutes(): MinuteTotals[] {
    return [...this.#minutes.values()].sort((a, b) => a.minute - b.minute);
  }

  #observe(file: CaptureFile): void {
    const { seconds, nanoseconds, linkType, capturedLength, wireLength } = file;
    this.#reading.observe(file.bytes, file.offset, capturedLength, wireLength, seconds, linkType);
    noteTime(this.facts, seconds, nanoseconds);
    if (capturedLength < wireLength) {
      this.facts.cutFrames += 1;
      this.facts.snapLength = Math.max(this.facts.snapLength, capturedLength);
    }
    if (!isSupportedLinkType(linkType))
      this.#unsupported.set(linkType, (this.#unsupported.get(linkType) ?? 0) + 1);
  }

  #observeInMinute(file: CaptureFile): void {
    const { totals } = this.#reading;
    const { ipBytes, parserDropped } = totals;
    this.#observe(file);
    const minute = Math.floor(file.seconds / 60) * 60;
    let sum = this.#minutes.get(minute);
    if (!sum) {
      sum = { minute, packets: 0, bytes: 0, parserDropped: 0 };
      this.#minutes.set(minute, sum);
    }
    sum.packets += 1;
    sum.bytes += totals.ipBytes - ipBytes;
    sum.parserDropped += totals.parserDropped - parserDropped;
  }

  #isInSpan(file: CaptureFile): boolean {
    const { from, to } = this.#options;
    if (!from && !to) return true;
    const at = file.seconds + file.nanoseconds / 1e9;
    if (!this.#hasSpan) {
      this.#hasSpan = true;
      if (from) this.#fromSeconds = resolveMoment(from, at);
      if (to) this.#toSeconds = resolveMoment(to, at);
    }
    return at >= this.#fromSeconds && at < this.#toSeconds;
  }
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
