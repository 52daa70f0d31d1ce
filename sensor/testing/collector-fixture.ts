/** A minute collector over a spool in memory, and what it commits as text. */
import assert from 'node:assert/strict';
import { CodedError } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { MinuteCollector, type MinuteCollectorOptions } from '#sensor/collection/minute-collector.ts';
import type { CommittedBy } from '#sensor/spool/index.ts';
import { firstMinute, sampleMinute } from './sample-minutes.ts';
import { steadyMoment } from './steady-moment.ts';

/** A minute by its number, seconds. */
export const at = (index: number) => firstMinute + index * 60;
/** A time by its minute's number, unix milliseconds. */
export const ms = (index: number, seconds = 0) => (at(index) + seconds) * 1000;

/** What was committed together, as text. */
interface Commit {
  minutes: string[];
  gaps: string[];
}

const showGap = (gap: TelemetryGap) => {
  const index = (minute: number) => (minute - firstMinute) / 60;
  const range = gap.fromMinute === gap.toMinute ? '' : `-${index(gap.toMinute)}`;
  return `${index(gap.fromMinute)}${range} ${gap.capture || 'all'} ${gap.reason}`;
};

export interface CollectorFixtureOptions {
  captures?: string[];
  covered?: number[];
  last?: CommittedBy;
  stateDirectory?: string;
  bootId?: string;
  /** Names of the spool's commits. */
  names?: string[];
  /** Minutes that the kernel counted from their start, by their numbers: 1,000 bytes each; 600 until the half of one. */
  counted?: { minutes: number[]; half?: number };
  /** See `MinuteCollectorOptions`. */
  dropped?: MinuteCollectorOptions['dropped'];
}

/** A collector over an in-memory spool with the real spool's rule for covered minutes. */
export function collectorFixture(options: CollectorFixtureOptions = {}) {
  const commits: Commit[] = [];
  const stored: TelemetryMinute[] = [];
  const { names = [], bootId = 'boot', stateDirectory } = options;
  const covered = new Set((options.covered ?? []).map(at));
  let isFull = false;
  const collector = new MinuteCollector({
    captures: options.captures ?? ['eth0'],
    reporter: silentReporter,
    bootId,
    ...(stateDirectory && { stateDirectory }),
    count(capture, minute, seen, committed) {
      const { minutes = [], half } = options.counted ?? {};
      const index = (minute - firstMinute) / 60;
      if (!minutes.includes(index)) return null;
      const [bytes, passedMs] = index === half ? [600, 30_000] : [1000, 60_000];
      const left = bytes - (committed?.totals.ipBytes ?? 0);
      const observedMs = passedMs - (committed?.observedMs ?? 0);
      return { ...(seen ?? { usage: [] }), ...sampleMinute(minute, left, observedMs), capture };
    },
    ...(options.dropped && { dropped: options.dropped }),
    onCommitted: () => {},
    spool: {
      append(minutes, gaps, extras) {
        if (isFull) throw new CodedError('spool.full', 'full');
        assert.ok(!names.includes(extras!.commit!), 'a commit is made twice');
        names.push(extras!.commit!);
        stored.push(...minutes);
        for (const { minute } of minutes) covered.add(minute);
        for (const gap of gaps) for (let m = gap.fromMinute; m <= gap.toMinute; m += 60) covered.add(m);
        commits.push({
          minutes: minutes.map(
            (one) => `${(one.minute - firstMinute) / 60} ${one.capture} ${one.observedMs}`,
          ),
          gaps: gaps.map(showGap),
        });
      },
      lastCommit: () => names.at(-1) ?? null,
      lastStampedBy: () => options.last ?? null,
      coveredBefore(minute) {
        const before = [...covered].filter((one) => one < minute);
        return before.length > 0 ? before.reduce((a, b) => Math.max(a, b)) : null;
      },
    },
  });
  return {
    commits,
    names,
    stored,
    collector,
    setFull(full: boolean) {
      isFull = full;
    },
    report(index: number, observedMs = 60_000, capture = 'eth0', reason: GapReason | null = null) {
      const minute: TelemetryMinute = { ...sampleMinute(at(index), 1, observedMs), capture };
      collector.report(minute, reason);
    },
    /** A live window of ten seconds; a tenth of its bytes are for `192.0.2.10`. */
    window(index: number, second: number, ipBytes: number) {
      const { totals } = sampleMinute(0, ipBytes);
      const host = { address: '192.0.2.10', rxBytes: ipBytes / 10, txBytes: 0, packets: 1 };
      collector.window({
        ...{ capture: 'eth0', role: 'uplink', startedAtMs: ms(index, second), observedMs: 10_000 },
        ...{ totals, hosts: [host], hostsLeftOut: 0, applications: [], spoofed: [] },
      });
      collector.tick(steadyMoment(ms(index, second + 10.5)));
    },
  };
}
