/**
 * Reads frames from a source into the packet path and reports closed minutes and live windows.
 *
 * Every turn compares wall time with monotonic time. After a clock step or a suspend of the host, the open minute ends
 * in the old time and another begins in the new time, so that no report covers time that did not pass. A minute is
 * closed by the time read before the source was drained: all frames stamped until then were read, but frames that
 * arrive while a full ring is drained may not be.
 */
import { startOfMinuteMs } from '#common/clock/index.ts';
import type { GapReason } from '#contracts/sensor-api/telemetry.ts';
import { type Capture, createCapture, type MinuteReport } from '#sensor/capture/index.ts';
import { type HostTime, offsetOf } from '#sensor/host-time/index.ts';
import type { ObserveFrame, PacketSource } from '#sensor/packet-source/index.ts';
import type { FromWorker, LocalAddresses, WorkerInput } from './capture-messages.ts';
import { registrableDomain } from './registrable-domain.ts';
import type { WallWatch } from './wall-watch.ts';

const pollMs = 100;
/** A window may close before its last block came from the ring; late frames count in the next window. */
const windowSettleMs = 250;

const discard: ObserveFrame = () => {};

export interface CaptureLoopDeps {
  input: Omit<WorkerInput, 'source'>;
  source: Pick<PacketSource, 'linkType' | 'settleMs' | 'lingerMs' | 'poll' | 'takeDropped'>;
  watch: WallWatch;
  hostTime: Pick<HostTime, 'read'>;
  say(message: FromWorker): void;
}

export interface CaptureLoop {
  /** Starts counting frames. */
  begin(local: LocalAddresses): void;
  setLocal(local: LocalAddresses): void;
  /** Reads ready frames, or waits up to 100 ms for them, and reports closed minutes and windows. */
  turn(): Promise<void>;
  /** Reads the frames that were under way at a stop. */
  linger(): Promise<void>;
  /** Reports the open minute. */
  finish(reason: GapReason): void;
}

/** Creates a loop over an open source. */
export function createCaptureLoop({ input, source, watch, hostTime, say }: CaptureLoopDeps): CaptureLoop {
  let capture: Capture | null = null;
  let observeFrame = discard;
  let local: LocalAddresses = { prefixes: [], addresses: [] };
  let reasonOfOpenMinute: GapReason | null = null;
  /** Wall time when draining of the source began. */
  let drainedMs = watch.look().nowMs;

  function listen(): void {
    const { linkType } = source;
    const begun = createCapture({ ...input, linkType, registrableDomain, local, clampTime: watch.clampTime });
    listenNow(begun);
    // Bound, because an arrow function with rest arguments would allocate an array for every packet.
    observeFrame = begun.observe.bind(begun);
    capture = begun;
  }

  function listenNow(begun: Capture): void {
    const moment = hostTime.read();
    begun.listeningSince(moment.wallMs);
    say({ kind: 'listening', sinceMs: moment.wallMs, offsetMs: offsetOf(moment) });
  }

  function sendReports(reports: MinuteReport[], lastReason: GapReason | null): void {
    if (reports.length === 0) return;
    const firstReason = reasonOfOpenMinute;
    reasonOfOpenMinute = null;
    say({
      kind: 'reports',
      reports: reports.map((report, i) => {
        const reason = (i === 0 ? firstReason : null) ?? (i === reports.length - 1 ? lastReason : null);
        return { minute: cutShort(report, reason), reason };
      }),
    });
  }

  function sendWindows(untilMs: number): void {
    const windows = capture?.closeWindows(untilMs) ?? [];
    if (windows.length > 0) say({ kind: 'windows', windows });
  }

  /** After a clock step: the open minute ends at the last old time, and another begins in the new time. */
  function followClock(nowMs: number, stepMs: number): void {
    if (stepMs === 0) return;
    const oldNowMs = nowMs - stepMs;
    if (capture) {
      sendReports(capture.closeAll(oldNowMs), 'clock_step');
      sendWindows(oldNowMs);
      // Names and flows survive a small step. After a large step their ages are meaningless.
      if (startOfMinuteMs(oldNowMs) === startOfMinuteMs(nowMs)) listenNow(capture);
      else listen();
    }
    reasonOfOpenMinute = 'clock_step';
  }

  return {
    begin(given) {
      local = given;
      listen();
    },
    setLocal(given) {
      local = given;
      capture?.setLocal(given);
    },
    async turn() {
      await source.poll(pollMs, observeFrame);
      const dropped = source.takeDropped();
      if (dropped > 0) capture?.addKernelDropped(dropped);
      const { nowMs, stepMs } = watch.look();
      followClock(nowMs, stepMs);
      const overMs = drainedMs + stepMs;
      drainedMs = nowMs;
      if (capture) sendReports(capture.closeMinutes(overMs - source.settleMs), null);
      sendWindows(overMs - Math.max(windowSettleMs, source.settleMs - 750));
    },
    async linger() {
      const until = performance.now() + source.lingerMs;
      do await source.poll(pollMs, observeFrame);
      while (performance.now() < until);
    },
    finish(reason) {
      if (!capture) return;
      const { wallMs } = hostTime.read();
      sendReports(capture.closeAll(wallMs), reason);
      sendWindows(wallMs);
    },
  };
}

/** Also reduces the observed time of an incomplete report. */
function cutShort(report: MinuteReport, reason: GapReason | null): MinuteReport {
  return reason ? { ...report, observedMs: Math.min(report.observedMs, 59_999) } : report;
}
