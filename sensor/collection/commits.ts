/**
 * One upload after the other into the spool. The latest one that found no room is held and tried again; when the next one
 * takes its place it becomes a gap, which goes with the first upload that does find room.
 */
import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type {
  GapReason,
  HostInventory,
  TelemetryGap,
  TelemetryMinute,
} from '#contracts/sensor-api/telemetry.ts';
import type { MinuteRange, Spool, StampedBy } from '#sensor/spool/index.ts';
import type { ProbeResults } from './minute-collector.ts';

/** Calls of `tick` between two attempts to store what found no room: ten seconds. */
const retryTicks = 20;

/** What the spool is to take with its next upload. */
export interface Commit {
  minutes: TelemetryMinute[];
  gaps: TelemetryGap[];
  range: MinuteRange;
  /** By which clock; absent where it is not known. */
  stampedBy?: StampedBy;
}

export interface CommitsOptions {
  spool: Pick<Spool, 'append' | 'lastCommit'>;
  reporter: Reporter;
  inventory?(): HostInventory | null;
  probes?: ProbeResults;
  onCommitted(): void;
}

export interface Commits {
  /** Commits one upload, or holds it when there is no room. */
  commit(one: Commit): void;
  tick(): void;
  /** Tries once more; what stays is not covered, so the next start names it. */
  finish(range: MinuteRange): void;
  isPaused(): boolean;
}

export function createCommits(options: CommitsOptions): Commits {
  const { spool, reporter } = options;
  const run = randomUUID();
  let number = 0;
  let held: (Commit & { id: string }) | null = null;
  /** Gaps that could not be committed yet. */
  let owed: TelemetryGap[] = [];
  let isPaused = false;
  let ticksHeld = 0;

  function store(one: Commit & { id: string }): void {
    const inventory = one.minutes.length > 0 ? options.inventory?.() : null;
    const probes = options.probes?.ready() ?? [];
    try {
      spool.append(one.minutes, [...owed, ...one.gaps], {
        commit: one.id,
        ...(one.stampedBy ? { stampedBy: one.stampedBy } : {}),
        ...(inventory ? { inventory } : {}),
        ...(probes.length > 0 ? { probes } : {}),
      });
    } catch (error) {
      if (!isPaused)
        reporter.error('collection pauses, pending uploads are kept', { why: describeError(error) });
      isPaused = true;
      return;
    }
    if (isPaused) reporter.info('collecting again');
    isPaused = false;
    held = null;
    owed = [];
    options.probes?.committed(probes);
    options.onCommitted();
  }

  function giveUp(one: Commit & { id: string }): void {
    // A commit whose sync failed may have happened all the same, and what was owed with it.
    if (spool.lastCommit() === one.id) owed = [];
    // Minutes without any report keep their own reason; what was reported and found no room is storage's fault.
    else if (one.minutes.length > 0) owed = joinGaps([...owed, gapOf(...one.range, '', 'storage_full')]);
    else owed = joinGaps([...owed, ...one.gaps]);
  }

  return {
    isPaused: () => isPaused,
    commit(one) {
      if (held) giveUp(held);
      number += 1;
      held = { ...one, id: `${run} ${number}` };
      store(held);
    },
    tick() {
      ticksHeld = held ? ticksHeld + 1 : 0;
      // What is stored already is left out by the spool.
      if (held && ticksHeld % retryTicks === 0) store(held);
    },
    finish(range) {
      number += 1;
      if (held) store(held);
      else if (options.probes && options.probes.ready().length > 0)
        store({ minutes: [], gaps: [], range, id: `${run} ${number}` });
    },
  };
}

export function gapOf(
  fromMinute: number,
  toMinute: number,
  capture: string,
  reason: GapReason,
): TelemetryGap {
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
