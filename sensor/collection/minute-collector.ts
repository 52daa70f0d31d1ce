/**
 * Puts together what the captures report for each minute and commits it to the spool, in order.
 *
 * Pure bookkeeping: time comes in with each call. Its one rule of truth: whatever is not known to be whole is named
 * by a gap, and a minute that the spool has covered is never committed again, whatever the clock does.
 */
import { startOfMinuteMs } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type {
  GapReason,
  HostInventory,
  ProbeResult,
  TelemetryGap,
  TelemetryMinute,
} from '#contracts/sensor-api/telemetry.ts';
import { type MinuteRange, missingBetween, type Spool } from '#sensor/spool/index.ts';
import { joinParts } from './merge-minutes.ts';

/** How long after a minute's end its reports may take. */
const latenessMs = 2000;
/** Calls of `tick` that a listening capture may let pass before its minute is given up. */
const ticksMax = 60;
/** Calls of `tick` between two attempts to store what found no room: ten seconds. */
const retryTicks = 20;
/** A clock that shows less was not set yet (2025): what it jumps over was never time to listen in. */
const setClockFrom = 1_735_689_600;

export interface MinuteCollectorOptions {
  captures: readonly string[];
  spool: Pick<Spool, 'append' | 'isCovered' | 'coveredBefore'>;
  reporter: Reporter;
  /** The host's interfaces and neighbours, to go with the minutes that are committed now. */
  inventory?(): HostInventory | null;
  /** What probes measured, to go with the next commit. */
  probes?: ProbeResults;
  /** Called after each commit. */
  onCommitted(): void;
}

/** Results that wait to be committed. */
export interface ProbeResults {
  ready(): ProbeResult[];
  /** These lie on disk now. */
  committed(results: readonly ProbeResult[]): void;
}

export interface MinuteCollector {
  /** Begins at this time, and commits the gap since the last covered minute. */
  start(nowMs: number): void;
  /** A capture listens from this time on. */
  listening(capture: string, sinceMs: number): void;
  /** A capture does not listen any more. */
  failed(capture: string): void;
  /** A closed minute of a capture; `reason` says why it is not whole. */
  report(minute: TelemetryMinute, reason: GapReason | null): void;
  /** Commits what is complete. To be called about twice a second. */
  tick(nowMs: number): void;
  /** Commits everything that was reported. */
  finish(): void;
  /** True while the disk takes nothing. */
  isPaused(): boolean;
}

interface Reported {
  minute: TelemetryMinute;
  reason: GapReason | null;
}

/** What the spool is to take with its next upload. */
interface Commit {
  minutes: TelemetryMinute[];
  gaps: TelemetryGap[];
  range: MinuteRange;
}

interface CaptureProgress {
  isListening: boolean;
  /** The first minute that may still be reported. */
  nextMinute: number;
}

const minuteOf = (ms: number) => startOfMinuteMs(ms) / 1000;

/** Makes a collector for these captures. */
export function createMinuteCollector(options: MinuteCollectorOptions): MinuteCollector {
  const { spool, reporter } = options;
  const progress = new Map<string, CaptureProgress>(
    options.captures.map((name) => [name, { isListening: false, nextMinute: 0 }]),
  );
  const pending = new Map<number, Map<string, Reported>>();
  /** The latest upload that found no room. It is tried again until the next one takes its place; then it is a gap. */
  let held: Commit | null = null;
  /** Gaps that could not be committed yet. */
  let owed: TelemetryGap[] = [];
  let isPaused = false;
  let cursor = 0;
  let startedIn = 0;
  let ticksWaited = 0;
  let ticksHeld = 0;

  function store(one: Commit): boolean {
    const inventory = one.minutes.length > 0 ? options.inventory?.() : null;
    const probes = options.probes?.ready() ?? [];
    try {
      spool.append(one.minutes, [...owed, ...one.gaps], {
        ...(inventory ? { inventory } : {}),
        ...(probes.length > 0 ? { probes } : {}),
      });
    } catch (error) {
      if (!isPaused)
        reporter.error('collection pauses, pending uploads are kept', { why: describeError(error) });
      isPaused = true;
      return false;
    }
    if (isPaused) reporter.info('collecting again');
    isPaused = false;
    held = null;
    owed = [];
    options.probes?.committed(probes);
    options.onCommitted();
    return true;
  }

  /** Commits one upload, or holds it when there is no room. What was held before becomes a gap that is owed. */
  function commit(minutes: TelemetryMinute[], gaps: TelemetryGap[], range: MinuteRange): void {
    if (held) giveUp(held);
    held = { minutes, gaps, range };
    store(held);
  }

  function giveUp(one: Commit): void {
    // A commit whose sync failed may have happened all the same, and what was owed with it.
    if (isStored(one)) owed = [];
    // Minutes without any report keep their own reason; what was reported and found no room is storage's fault.
    else if (one.minutes.length > 0) owed = joinGaps([...owed, gapOf(...one.range, '', 'storage_full')]);
    else owed = joinGaps([...owed, ...one.gaps]);
  }

  function isStored(one: Commit): boolean {
    return one.minutes.length > 0 && spool.isCovered(one.range[0]);
  }

  function commitGap(range: MinuteRange, capture: string, reason: GapReason): void {
    commit([], [gapOf(...range, capture, reason)], range);
  }

  function gapsOf(minute: number, reports: Map<string, Reported>): TelemetryGap[] {
    const gaps: TelemetryGap[] = [];
    for (const name of progress.keys()) {
      const reported = reports.get(name);
      if (!reported) {
        gaps.push(gapOf(minute, minute, name, 'capture_failed'));
      } else if (reported.minute.observedMs < 60_000 || reported.reason) {
        const assumed = minute === startedIn ? 'sensor_down' : 'capture_failed';
        gaps.push(gapOf(minute, minute, name, reported.reason ?? assumed));
      }
    }
    return gaps;
  }

  function commitMinute(minute: number): void {
    const reports = pending.get(minute) ?? new Map<string, Reported>();
    pending.delete(minute);
    // The clock was set back while the sensor was down: this minute was collected once, or is a gap, already.
    if (spool.isCovered(minute)) {
      commitGap([minute, minute], '', 'clock_step');
      return;
    }
    const minutes = [...reports.values()].map((reported) => reported.minute);
    commit(minutes, gapsOf(minute, reports), [minute, minute]);
  }

  /** Names a silence, but not what was collected in it before: a clock that starts in 1970 must not spoil that. */
  function commitSilence(from: number, to: number, reason: GapReason): void {
    for (let end = to; end >= from; ) {
      const before = spool.isCovered(end) ? end : spool.coveredBefore(end);
      const start = Math.max(from, before === null ? from : before + 60);
      if (start >= setClockFrom && start <= end) commitGap([start, end], '', reason);
      if (before === null || start < setClockFrom) return;
      end = before - 60;
    }
  }

  /** The last minute of the silence that begins at the cursor: nobody reported it and nobody will. */
  function silentThrough(thisMinute: number): number {
    const expected = [...progress.values()].filter((one) => one.isListening).map((one) => one.nextMinute);
    return Math.min(thisMinute, ...pending.keys(), ...expected) - 60;
  }

  function isComplete(): boolean {
    return [...progress.values()].every((one) => !one.isListening || one.nextMinute > cursor);
  }

  /** One step past the cursor. Returns false when it has to wait. */
  function advance(thisMinute: number): boolean {
    const silent = silentThrough(thisMinute);
    if (silent >= cursor) {
      const reason = [...progress.values()].some((one) => one.isListening) ? 'clock_step' : 'capture_failed';
      commitSilence(cursor, silent, reason);
      cursor = silent + 60;
      return true;
    }
    if (!isComplete()) {
      ticksWaited += 1;
      if (ticksWaited < ticksMax) return false;
      reporter.error('a capture does not report, its minute is a gap', { minute: isoMinute(cursor) });
    }
    ticksWaited = 0;
    commitMinute(cursor);
    cursor += 60;
    return true;
  }

  return {
    isPaused: () => isPaused,
    start(nowMs) {
      cursor = minuteOf(nowMs);
      startedIn = cursor;
      const missing = missingBetween(spool.coveredBefore(cursor), cursor);
      if (missing) {
        const [from, to] = missing;
        reporter.warn('minutes were missed while the sensor was down', {
          from: isoMinute(from),
          to: isoMinute(to),
        });
        commitGap([from, to], '', 'sensor_down');
      }
      // Stopped and started within one minute: its first part is committed, and named partial by a gap.
      if (spool.isCovered(cursor)) cursor += 60;
    },

    listening(capture, sinceMs) {
      progress.set(capture, { isListening: true, nextMinute: minuteOf(sinceMs) });
    },

    failed(capture) {
      const one = progress.get(capture);
      if (one) one.isListening = false;
    },

    report(minute, reason) {
      const one = progress.get(minute.capture);
      if (one) one.nextMinute = Math.max(one.nextMinute, minute.minute + 60);
      if (minute.minute < cursor) {
        if (minute.minute === startedIn) return;
        reporter.warn('the clock went back into a minute that was collected', {
          minute: isoMinute(minute.minute),
        });
        commitGap([minute.minute, minute.minute], minute.capture, 'clock_step');
        return;
      }
      const reports = pending.get(minute.minute) ?? new Map<string, Reported>();
      pending.set(minute.minute, reports);
      const earlier = reports.get(minute.capture);
      if (!earlier) {
        reports.set(minute.capture, { minute, reason });
        return;
      }
      // The capture began anew within the minute: its parts add, and the minute is partial.
      const joined = joinParts(earlier.minute, minute);
      reports.set(minute.capture, { minute: joined, reason: earlier.reason ?? reason ?? 'capture_failed' });
    },

    tick(nowMs) {
      ticksHeld = held ? ticksHeld + 1 : 0;
      // What is stored already is left out by the spool.
      if (held && ticksHeld % retryTicks === 0) store(held);
      const thisMinute = minuteOf(nowMs - latenessMs);
      while (cursor < thisMinute && advance(thisMinute)) {
        // Goes on until the clock or a missing report stops it.
      }
    },

    finish() {
      for (const minute of [...pending.keys()].sort((a, b) => a - b)) {
        const missing = missingBetween(cursor - 60, minute);
        if (missing) commitGap(missing, '', 'capture_failed');
        commitMinute(minute);
        cursor = minute + 60;
      }
      // What is still held or owed is not covered, so the next start names it.
      if (held) store(held);
      else if (options.probes && options.probes.ready().length > 0)
        store({ minutes: [], gaps: [], range: [cursor, cursor] });
    },
  };
}

function gapOf(fromMinute: number, toMinute: number, capture: string, reason: GapReason): TelemetryGap {
  return { fromMinute, toMinute, capture, reason };
}

/** Neighbouring gaps of one capture and reason as one. */
function joinGaps(gaps: TelemetryGap[]): TelemetryGap[] {
  const joined: TelemetryGap[] = [];
  const latest = new Map<string, TelemetryGap>();
  for (const gap of gaps) {
    const key = `${gap.reason} ${gap.capture}`;
    const last = latest.get(key);
    if (last && gap.fromMinute === last.toMinute + 60) {
      last.toMinute = gap.toMinute;
      continue;
    }
    const added = { ...gap };
    latest.set(key, added);
    joined.push(added);
  }
  return joined;
}

function isoMinute(minute: number): string {
  return new Date(minute * 1000).toISOString().slice(0, 16);
}
