/**
 * A capture for continuous operation: an engine whose counters are read and cleared at every UTC minute.
 *
 * A frame's own time decides its minute. A frame of a later minute closes the open one. A late frame counts in the open
 * minute, unless it is more than a minute late: then the clock was set back, and the frame's minute opens.
 * `clampTime` replaces implausible times, so that a clock step does not close minutes that never passed.
 */

import { type CaptureOptions, emptyTotals, type LocalScope, type PacketTap } from './capture.ts';
import { Engine } from './engine.ts';
import { NameTable } from './names/name-table.ts';
import type { OwnScan } from './own-scans.ts';
import { randomKey } from './random-key.ts';
import { LiveWindows } from './reports/live-windows.ts';
import type { MinuteReport, WindowReport } from './reports/minute-report.ts';

const minuteSeconds = 60;
/** Minutes without a frame that are reported one by one. A longer jump means that the clock was set. */
const silentMinutesMax = 60;
/** Sizes for four captures in 32 MiB (NET-8.6). */
const sizes = {
  buffersMax: 160,
  queriesMax: 8192,
  answersMax: 4096,
  remoteHostsMax: 4096,
  // More than are reported, so that the largest can be chosen.
  usageRowsMax: 8192,
  /** Half of the reported rows; the rest is reserved for named or answered traffic. */
  noiseRowsMax: 2048,
};
/** Flows of one capture (NET-8.6). */
const flowsOfCapture = 32_768;
/** Rows of one minute (NET-8.6). */
const reportedRowsMax = 4096;
const namesMax = 12_288;
/** Windows that are kept for `closeWindows`. */
const windowsHeldMax = 64;

export class MinuteCapture {
  readonly #options: CaptureOptions;
  readonly #engine: Engine;
  /** Start of the open minute in unix seconds, -1 before the first. */
  #minute = -1;
  #listeningSinceMs = -1;
  #closed: MinuteReport[] = [];
  readonly #live: LiveWindows | null;
  readonly #windowSeconds: number;
  /** Start of the open window in seconds of the minute, and the second at which a frame ends it. */
  #windowStart = 0;
  #windowEnd: number;
  #windows: WindowReport[] = [];
  #tap: PacketTap | null = null;
  #isTapPaused = false;
  /** The tap's open second. */
  #tapSecond = Number.POSITIVE_INFINITY;
  /** Packets of the open minute that the tap knows of, and those of closed minutes that it does not. */
  #tapKnows = 0;
  #tapMissed = 0;

  constructor(options: CaptureOptions) {
    const key = options.hashKey ?? randomKey();
    const share = options.share ?? 1;
    const names = new NameTable(Math.ceil(namesMax * share), key[0] ^ 0x5bd1e995, options.registrableDomain);
    const flowsMax = options.flowsMax ?? Math.floor(flowsOfCapture * share);
    this.#options = options;
    this.#engine = new Engine(options, { ...shareOf(sizes, share), flowsMax }, names, null, key);
    this.#windowSeconds = (options.windowMs ?? 60_000) / 1000;
    this.#windowEnd = this.#windowSeconds;
    this.#live =
      options.windowMs === undefined
        ? null
        : new LiveWindows(this.#engine, names, key[0], options.windowApplicationsMax ?? 0);
  }

  /**
   * Counts the frame at `offset` in `bytes`. `vlanTci` is the tag that the kernel removed from the frame, -1 for none.
   * `segments` is the number of packets that offload merged into it: 1 by default, 0 for an unknown number. Never
   * throws. Pass the same `bytes` object for frames of one buffer, because a view is made for each new object.
   */
  observe(
    bytes: Uint8Array,
    offset: number,
    capturedLength: number,
    wireLength: number,
    seconds: number,
    nanoseconds: number,
    vlanTci: number,
    segments = 1,
  ): void {
    const into = seconds - this.#minute;
    let second = seconds;
    if (into >= this.#windowEnd || into < -minuteSeconds || this.#minute < 0) {
      second = this.#options.clampTime?.(seconds) ?? seconds;
      this.#turnTo(second, nanoseconds);
    }
    if (second > this.#tapSecond) this.#turnTap(second);
    const engine = this.#engine;
    const offsetSeconds = Math.max(0, second - this.#minute);
    engine.now = second;
    engine.offsetMs = offsetSeconds * 1000 + ((nanoseconds / 1_000_000) | 0) + 1;
    engine.observe(this.#options.linkType, bytes, offset, capturedLength, wireLength, vlanTci, segments);
  }

  /** Passes counted packets to a tap from the open second on; null: to none. */
  setTap(tap: PacketTap | null): void {
    this.#tap = tap;
    this.#engine.setTap(this.#isTapPaused ? null : tap);
    this.#tapKnows = this.#engine.totals.ipPackets;
    this.#tapMissed = 0;
    // Without a tap no second ends.
    this.#tapSecond = tap ? 0 : Number.POSITIVE_INFINITY;
  }

  /** A paused tap gets its seconds, but no packets. One that goes on is asked again which flows it wants. */
  pauseTap(isPaused: boolean): void {
    this.#isTapPaused = isPaused;
    this.#engine.setTap(isPaused ? null : this.#tap);
  }

  /** Ends the seconds before this time (unix ms) for the tap, also without a frame. */
  turnTap(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    if (second > this.#tapSecond) this.#turnTap(second);
  }

  /** The clock was set: the tap goes on with the second of this time, whichever came before. */
  restartTap(nowMs: number): void {
    if (this.#tap) this.#turnTap(Math.floor(nowMs / 1000));
  }

  /** Replaces the local scope; the direction of open flows is decided again. */
  setLocal(local: LocalScope): void {
    this.#engine.setLocal(local);
  }

  /** Keeps the traffic of the sensor's own scans apart from now on: it is no application, and the tap does not get it. */
  setOwnScans(scans: readonly OwnScan[]): void {
    this.#engine.setOwnScans(scans);
  }

  /** Adds packets that the kernel dropped since the last call to the open minute. */
  addKernelDropped(packets: number): void {
    this.#engine.totals.kernelDropped += packets;
  }

  /** Sets when this capture began to listen (unix ms), so that `observedMs` is right for its first minute. */
  listeningSince(ms: number): void {
    this.#listeningSinceMs = ms;
    if (this.#minute < 0) this.#minute = minuteOf(ms / 1000);
  }

  /**
   * Closes every minute that ended at or before `nowMs`, oldest first. A minute without a frame gives a report of
   * zeros. A frame of a later minute also closes the open one; the next call returns its report.
   */
  closeMinutes(nowMs: number): MinuteReport[] {
    if (this.#minute >= 0) this.#advance(minuteOf(nowMs / 1000));
    const closed = this.#closed;
    this.#closed = [];
    return closed;
  }

  /**
   * Windows that ended at or before `nowMs`, oldest first; empty without `windowMs`. The windows of a minute add up to
   * its report, except for frames that came late.
   */
  closeWindows(nowMs: number): WindowReport[] {
    if (this.#minute >= 0) this.#advanceWindows(nowMs / 1000 - this.#minute);
    const windows = this.#windows;
    this.#windows = [];
    return windows;
  }

  /** Closes everything as at `nowMs`, including the open minute (for an orderly stop). */
  closeAll(nowMs: number): MinuteReport[] {
    const closed = this.closeMinutes(nowMs);
    if (this.#minute >= 0) {
      this.#close(nowMs);
      closed.push(...this.#closed);
      this.#closed = [];
      this.#minute = -1;
      this.#listeningSinceMs = -1;
    }
    return closed;
  }

  #turnTap(second: number): void {
    this.#engine.settleTap();
    this.#tapSecond = second;
    const { ipPackets } = this.#engine.totals;
    const packets = this.#tapMissed + ipPackets - this.#tapKnows;
    this.#tapKnows = ipPackets;
    this.#tapMissed = 0;
    this.#tap!.turn(second, packets);
  }

  #turnTo(seconds: number, nanoseconds: number): void {
    const minute = minuteOf(seconds);
    if (this.#minute < 0) {
      this.#minute = minute;
      if (this.#listeningSinceMs < 0) this.#listeningSinceMs = seconds * 1000 + nanoseconds / 1_000_000;
    } else if (minute === this.#minute) this.#advanceWindows(seconds - minute);
    else if (minute > this.#minute) this.#advance(minute);
    else {
      this.#close((this.#minute + minuteSeconds) * 1000);
      this.#minute = minute;
    }
  }

  /** Closes windows that end at or before this second of the minute. The minute itself closes its last window. */
  #advanceWindows(intoMinute: number): void {
    while (this.#windowEnd <= intoMinute && this.#windowEnd < minuteSeconds) {
      this.#closeWindow((this.#minute + this.#windowEnd) * 1000);
      this.#windowStart = this.#windowEnd;
      this.#windowEnd += this.#windowSeconds;
    }
  }

  #closeWindow(untilMs: number): void {
    if (!this.#live) return;
    const startedAtMs = (this.#minute + this.#windowStart) * 1000;
    const since = Math.max(startedAtMs, this.#listeningSinceMs);
    const observedMs = Math.round(Math.max(0, untilMs - since));
    const counters = this.#live.take();
    if (observedMs > 0) this.#windows.push({ startedAtMs, observedMs, ...counters });
    // Without a call of `closeWindows` the oldest windows are dropped, so that memory stays bounded.
    if (this.#windows.length > windowsHeldMax) this.#windows.shift();
  }

  /** Closes minutes until `minute` is open. */
  #advance(minute: number): void {
    if (minute - this.#minute > silentMinutesMax * minuteSeconds) {
      this.#close((this.#minute + minuteSeconds) * 1000);
      this.#minute = minute;
    }
    while (this.#minute < minute) {
      this.#close((this.#minute + minuteSeconds) * 1000);
      this.#minute += minuteSeconds;
    }
  }

  /** Reads and clears the open minute, observed until `untilMs`. */
  #close(untilMs: number): void {
    const engine = this.#engine;
    const startMs = this.#minute * 1000;
    engine.flushAll();
    this.#advanceWindows((untilMs - startMs) / 1000);
    this.#closeWindow(untilMs);
    this.#live?.restart();
    this.#windowStart = 0;
    this.#windowEnd = this.#windowSeconds;
    const since = Math.max(startMs, this.#listeningSinceMs);
    const { rows, leftOutPackets } = engine.ledger.usage.rows(startMs, reportedRowsMax);
    // A packet may have lost both its name and its row; it counts once.
    const truncated = engine.totals.detailTruncated + leftOutPackets;
    engine.totals.detailTruncated = Math.min(truncated, engine.totals.ipPackets);
    const { rows: hosts, routerMacs } = engine.ledger.hosts.rows(
      this.#options.name,
      this.#options.role === 'bridge',
    );
    this.#closed.push({
      minute: this.#minute,
      capture: this.#options.name,
      role: this.#options.role,
      observedMs: Math.round(Math.min(60_000, Math.max(0, untilMs - since))),
      totals: { ...engine.totals },
      hosts,
      routerMacs,
      usage: rows,
      spoofed: engine.ledger.spoofed.rows(this.#options.name),
    });
    this.#tapMissed += engine.totals.ipPackets - this.#tapKnows;
    this.#tapKnows = 0;
    Object.assign(engine.totals, emptyTotals());
    engine.ledger.clear();
    engine.tidy();
  }
}

function shareOf(whole: typeof sizes, share: number): typeof sizes {
  const part = (size: number) => Math.max(1, Math.floor(size * share));
  // The number of sets must be a power of two.
  const sets = (size: number) => 2 ** Math.floor(Math.log2(part(size)));
  return {
    buffersMax: part(whole.buffersMax),
    queriesMax: sets(whole.queriesMax),
    answersMax: sets(whole.answersMax),
    remoteHostsMax: part(whole.remoteHostsMax),
    usageRowsMax: part(whole.usageRowsMax),
    noiseRowsMax: part(whole.noiseRowsMax),
  };
}

function minuteOf(seconds: number): number {
  return Math.floor(seconds / minuteSeconds) * minuteSeconds;
}
