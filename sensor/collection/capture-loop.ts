/**
 * Reads frames from a source into the packet path and reports closed minutes and live windows.
 *
 * Every turn compares wall time with monotonic time. After a clock step or a suspend of the host, the open minute ends
 * in the old time and another begins in the new time, so that no report covers time that did not pass. A minute is
 * closed by the time read before the source was drained: all frames stamped until then were read, but frames that
 * arrive while a full ring is drained may not be.
 */

import { getDomain } from 'tldts';
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import { type CountingOrder, LiveCounters, type WatchedScope } from '#sensor/attack-counters/index.ts';
import { type Capture, createCapture, type MinuteReport, type OwnScan } from '#sensor/capture/index.ts';
import { clockStepMs, type HostTime, offsetOf } from '#sensor/host-time/index.ts';
import type { ObserveFrame, PacketSource } from '#sensor/packet-source/index.ts';
import { PacketRecorder, type WantedRecording } from '#sensor/recording/index.ts';
import type { FromWorker, LocalAddresses, WorkerInput } from './capture-messages.ts';

const pollMs = 100;
/** A window may close before its last block came from the ring; late frames count in the next window. */
const windowSettleMs = 250;
/** How long the detector waits at most for frames of a second that is over. */
const secondSettleMaxMs = 250;

const discard: ObserveFrame = () => {};

interface CaptureLoopDeps {
  input: Omit<WorkerInput, 'source'>;
  source: Pick<PacketSource, 'linkType' | 'settleMs' | 'lingerMs' | 'poll' | 'takeDropped'>;
  watch: WallWatch;
  hostTime: Pick<HostTime, 'read'>;
  say(message: FromWorker): void;
}

export class CaptureLoop {
  readonly #deps: CaptureLoopDeps;
  #capture: Capture | null = null;
  readonly #recorder: PacketRecorder;
  /** Where frames go: to the counters alone, or also to the recorder. */
  #observeFrame = discard;
  #countFrame = discard;
  #counters: LiveCounters | null = null;
  #watched: WatchedScope = null;
  readonly #secondSettleMs: number;
  #local: LocalAddresses = { prefixes: [], addresses: [] };
  #ownScans: readonly OwnScan[] = [];
  #reasonOfOpenMinute: GapReason | null = null;
  /** Wall time when draining of the source began. */
  #drainedMs: number;

  constructor(deps: CaptureLoopDeps) {
    this.#deps = deps;
    this.#recorder = new PacketRecorder(deps.source.linkType);
    this.#drainedMs = deps.watch.look().nowMs;
    this.#secondSettleMs = Math.min(deps.source.lingerMs / 2, secondSettleMaxMs);
  }

  /** Starts counting frames. */
  begin(local: LocalAddresses): void {
    this.#local = local;
    this.#listen();
  }

  setLocal(local: LocalAddresses): void {
    this.#local = local;
    this.#capture?.setLocal(local);
  }

  /** Counts for the detector from now on; null: no more. */
  setCounting(order: CountingOrder | null): void {
    this.#counters = order && new LiveCounters(order);
    this.#counters?.restrict(this.#watched);
    this.#capture?.setTap(this.#counters);
  }

  /** Counts for the detector what these addresses send and receive; null: all that is protected. */
  watch(scope: WatchedScope): void {
    this.#watched = scope;
    this.#counters?.restrict(scope);
    this.#pauseTap();
  }

  #pauseTap(): void {
    const scope = this.#watched;
    const { addresses, prefixes, senders } = scope ?? { addresses: [], prefixes: [], senders: true };
    this.#capture?.pauseTap(addresses.length + prefixes.length === 0 && !senders);
  }

  /** Records the packets of these attacks from now on, and of no others. */
  record(wanted: readonly WantedRecording[]): void {
    this.#recorder.follow(wanted);
    this.#sendRecorded();
  }

  /** Keeps the traffic of the sensor's own scans apart from now on. */
  setOwnScans(scans: readonly OwnScan[]): void {
    this.#ownScans = scans;
    this.#capture?.setOwnScans(scans);
  }

  /** Reads ready frames, or waits up to 100 ms for them, and reports closed minutes and windows. */
  async turn(): Promise<void> {
    const { source, watch } = this.#deps;
    await source.poll(this.#pollMs(), this.#observeFrame);
    if (this.#observeFrame !== this.#countFrame) this.#sendRecorded();
    const dropped = source.takeDropped();
    if (dropped > 0) {
      this.#capture?.addKernelDropped(dropped);
      this.#counters?.noteDropped(dropped);
    }
    const { nowMs, stepMs } = watch.look();
    this.#followClock(nowMs, stepMs);
    const overMs = this.#drainedMs + stepMs;
    this.#drainedMs = nowMs;
    this.#sendSeconds(overMs - this.#secondSettleMs);
    if (this.#capture) this.#sendReports(this.#capture.closeMinutes(overMs - source.settleMs), null);
    this.#sendWindows(overMs - Math.max(windowSettleMs, source.settleMs - 750));
  }

  /** Reads the frames that were under way at a stop. */
  async linger(): Promise<void> {
    const { source } = this.#deps;
    const until = performance.now() + source.lingerMs;
    do await source.poll(pollMs, this.#observeFrame);
    while (performance.now() < until);
  }

  /** Reports the open minute. */
  finish(reason: GapReason): void {
    this.#recorder.end();
    this.#sendRecorded();
    if (!this.#capture) return;
    const { wallMs } = this.#deps.hostTime.read();
    this.#sendReports(this.#capture.closeAll(wallMs), reason);
    this.#sendWindows(wallMs);
  }

  #listen(): void {
    const { input, source, watch } = this.#deps;
    const { linkType } = source;
    const { clampTime } = watch;
    const begun = createCapture({ ...input, linkType, registrableDomain, local: this.#local, clampTime });
    this.#listenNow(begun);
    // Bound, because an arrow function with rest arguments would allocate an array for every packet.
    this.#countFrame = begun.observe.bind(begun);
    this.#sendRecorded();
    this.#capture = begun;
    this.#pauseTap();
    if (this.#counters) begun.setTap(this.#counters);
    if (this.#ownScans.length > 0) begun.setOwnScans(this.#ownScans);
  }

  #listenNow(begun: Capture): void {
    const moment = this.#deps.hostTime.read();
    begun.listeningSince(moment.wallMs);
    this.#deps.say({ kind: 'listening', sinceMs: moment.wallMs, offsetMs: offsetOf(moment) });
  }

  /** After a clock step: the open minute ends at the last old time, and another begins in the new time. */
  #followClock(nowMs: number, stepMs: number): void {
    if (stepMs === 0) return;
    const oldNowMs = nowMs - stepMs;
    this.#breakSeconds(nowMs, stepMs);
    if (this.#capture) {
      this.#sendReports(this.#capture.closeAll(oldNowMs), 'clock_step');
      this.#sendWindows(oldNowMs);
      // Names and flows survive a small step. After a large step their ages are meaningless.
      if (startOfMinuteMs(oldNowMs) === startOfMinuteMs(nowMs)) this.#listenNow(this.#capture);
      else this.#listen();
    }
    this.#reasonOfOpenMinute = 'clock_step';
  }

  /** How long to wait for frames: with a detector, not past the end of a second. */
  #pollMs(): number {
    if (!this.#counters) return pollMs;
    const intoSecond = (this.#drainedMs - this.#secondSettleMs) % 1000;
    return Math.min(pollMs, Math.max(1, Math.ceil(1000 - intoSecond)));
  }

  /** Hands over full recordings. While there is none, frames go straight to the counters. */
  #sendRecorded(): void {
    const recorded = this.#recorder.take();
    if (recorded.length > 0) this.#deps.say({ kind: 'recorded', recorded });
    this.#observeFrame = this.#recorder.isRecording ? this.#recordFrame : this.#countFrame;
  }

  readonly #recordFrame: ObserveFrame = (
    bytes,
    offset,
    captured,
    length,
    seconds,
    nanoseconds,
    tci,
    segments,
  ) => {
    this.#recorder.observe(bytes, offset, captured, length, seconds, nanoseconds, tci);
    this.#countFrame(bytes, offset, captured, length, seconds, nanoseconds, tci, segments);
  };

  #sendSeconds(untilMs: number): void {
    if (!this.#counters) return;
    this.#capture?.turnTap(untilMs);
    const seconds = this.#counters.takeSeconds();
    if (seconds.length > 0) this.#deps.say({ kind: 'seconds', seconds });
  }

  /** The clock was set: hands over what was counted by the old time. */
  #breakSeconds(nowMs: number, byMs: number): void {
    if (!this.#counters) return;
    this.#counters.noteBreak();
    this.#capture?.restartTap(nowMs);
    const seconds = this.#counters.takeSeconds();
    if (seconds.length > 0) this.#deps.say({ kind: 'seconds', seconds });
    this.#deps.say({ kind: 'stepped', byMs });
  }

  #sendReports(reports: MinuteReport[], lastReason: GapReason | null): void {
    if (reports.length === 0) return;
    const firstReason = this.#reasonOfOpenMinute;
    this.#reasonOfOpenMinute = null;
    this.#deps.say({
      kind: 'reports',
      reports: reports.map((report, i) => {
        const reason = (i === 0 ? firstReason : null) ?? (i === reports.length - 1 ? lastReason : null);
        return { minute: cutShort(report, reason), reason };
      }),
    });
  }

  #sendWindows(untilMs: number): void {
    const windows = this.#capture?.closeWindows(untilMs) ?? [];
    if (windows.length > 0) this.#deps.say({ kind: 'windows', windows });
  }
}

/** Also reduces the observed time of an incomplete report. */
function cutShort(report: MinuteReport, reason: GapReason | null): MinuteReport {
  return reason ? { ...report, observedMs: Math.min(report.observedMs, 59_999) } : report;
}

// Registrable domains by the pinned public suffix list. Separate, because the packet path imports no package.

/** `www.example.co.uk` gives `example.co.uk`; null for an address, a bare suffix or a single label. */
function registrableDomain(host: string): string | null {
  return getDomain(host, { allowPrivateDomains: false });
}

// Detects steps of the wall clock by comparing it with monotonic time at every look.

/** A frame may be stamped slightly later than the clock was read. */
const aheadSeconds = 2;
/** How late a frame may come from the ring. */
const lateSeconds = 61;
/** Two reads with a longer interval were interrupted and are not compared. */
const readGapMaxMs = 50;

type WallWatch = ReturnType<typeof createWallWatch>;

export function createWallWatch(
  wallMs: () => number = Date.now,
  monotonicMs: () => number = () => performance.now(),
) {
  let seenMs = wallMs();
  let offsetMs = seenMs - monotonicMs();
  return {
    /** Wall time, and the clock step since the last look; 0 for none. */
    look(): { nowMs: number; stepMs: number } {
      const beforeMs = monotonicMs();
      const nowMs = wallMs();
      const afterMs = monotonicMs();
      const changeMs = nowMs - beforeMs - offsetMs;
      if (afterMs - beforeMs > readGapMaxMs) return { nowMs: afterMs + offsetMs, stepMs: 0 };
      seenMs = nowMs;
      // Updated at every look, so that hours of slewing do not add up to a step.
      offsetMs += changeMs;
      return { nowMs, stepMs: Math.abs(changeMs) < clockStepMs ? 0 : changeMs };
    },
    /**
     * The frame's own time if it is plausible for the passed time. Otherwise the frame was stamped around a clock step
     * and counts as present.
     */
    clampTime(seconds: number): number {
      const presentMs = monotonicMs() + offsetMs;
      const isPossible = seconds <= presentMs / 1000 + aheadSeconds && seconds >= seenMs / 1000 - lateSeconds;
      return isPossible ? seconds : Math.floor(presentMs / 1000);
    },
  };
}
