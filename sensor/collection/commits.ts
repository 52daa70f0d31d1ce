/**
 * Commits uploads to the spool one after the other. The latest upload without room is held and retried. When the next
 * one replaces it, it becomes a gap, which is committed with the first upload that finds room.
 */
import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { MinuteRange, OtherRecords, RecordSource, Spool, StampedBy } from '#sensor/spool/index.ts';

/** Calls of `tick` between two attempts to store a held upload: ten seconds. */
const retryTicks = 20;

/** Input of one commit. */
export interface Commit {
  minutes: TelemetryMinute[];
  gaps: TelemetryGap[];
  range: MinuteRange;
  /** The clock that stamped it; absent when unknown. */
  stampedBy?: StampedBy;
}

export interface CommitsOptions {
  spool: Pick<Spool, 'append' | 'lastCommit'>;
  reporter: Reporter;
  /** Records that go with the next commit. */
  records?: readonly AnyRecordSource[];
  onCommitted(): void;
}

export type Commits = ReturnType<typeof createCommits>;

export function createCommits(options: CommitsOptions) {
  const { spool, reporter, records = [] } = options;
  const run = randomUUID();
  let number = 0;
  let held: (Commit & { id: string }) | null = null;
  /** Gaps that are not committed yet. */
  let owed: TelemetryGap[] = [];
  let isPaused = false;
  let ticksHeld = 0;

  function store(one: Commit & { id: string }): void {
    const ready = takeReady(records, one.minutes.length > 0);
    try {
      spool.append(one.minutes, [...owed, ...one.gaps], {
        commit: one.id,
        ...(one.stampedBy ? { stampedBy: one.stampedBy } : {}),
        records: ready.records,
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
    ready.committed();
    options.onCommitted();
  }

  function giveUp(one: Commit & { id: string }): void {
    // A commit may have succeeded although its sync failed; then the owed gaps are committed too.
    if (spool.lastCommit() === one.id) owed = [];
    // Minutes without a report keep their own reason. Reported minutes without room get a storage reason.
    else if (one.minutes.length > 0) owed = joinGaps([...owed, gapOf(...one.range, '', 'storage_full')]);
    else owed = joinGaps([...owed, ...one.gaps]);
  }

  return {
    isPaused: () => isPaused,
    /** Commits one upload, or holds it without room. */
    commit(one: Commit) {
      if (held) giveUp(held);
      number += 1;
      held = { ...one, id: `${run} ${number}` };
      store(held);
    },
    tick() {
      ticksHeld = held ? ticksHeld + 1 : 0;
      // The spool skips minutes that are stored already.
      if (held && ticksHeld % retryTicks === 0) store(held);
    },
    /** Retries once. If it fails, the minutes stay uncovered, and the next start reports them as a gap. */
    finish(range: MinuteRange) {
      number += 1;
      if (held) store(held);
      else if (hasReady(records)) store({ minutes: [], gaps: [], range, id: `${run} ${number}` });
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

/** Joins neighbouring gaps of one capture and reason. */
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

// What the parts of the sensor have ready for the next commit.

export type AnyRecordSource = { [Name in keyof OtherRecords]-?: RecordSource<Name> }[keyof OtherRecords];

/** Takes what is ready. Records that do not go alone wait for minutes. */
function takeReady(sources: readonly AnyRecordSource[], hasMinutes: boolean) {
  const records: OtherRecords = {};
  const ends = sources.filter(({ kind }) => hasMinutes || kind.goesAlone).map((one) => take(one, records));
  return {
    records,
    /** Says that they lie on disk now. */
    committed() {
      for (const end of ends) end();
    },
  };
}

function take<Name extends keyof OtherRecords>(
  source: RecordSource<Name>,
  records: OtherRecords,
): () => void {
  const ready = readyOf(source);
  if (!ready) return () => {};
  records[source.kind.name] = ready;
  return () => source.committed?.(ready);
}

function readyOf<Name extends keyof OtherRecords>(source: RecordSource<Name>): OtherRecords[Name] | null {
  const ready = source.ready();
  const isEmpty =
    ready === null || source.kind.count({ minutes: [], gaps: [], [source.kind.name]: ready }) === 0;
  return isEmpty ? null : ready;
}

/** True where something is ready that is worth a commit of its own. */
function hasReady(sources: readonly AnyRecordSource[]): boolean {
  return sources.some((source) => source.kind.goesAlone && readyOf(source) !== null);
}
