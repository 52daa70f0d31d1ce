import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CodedError } from '#common/errors/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { GapReason, TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { firstMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { createMinuteCollector } from './minute-collector.ts';

const at = (index: number) => firstMinute + index * 60;
const ms = (index: number, seconds = 0) => (at(index) + seconds) * 1000;

interface Commit {
  minutes: string[];
  gaps: string[];
}

const showGap = (gap: TelemetryGap) => {
  const index = (minute: number) => (minute - firstMinute) / 60;
  const range = gap.fromMinute === gap.toMinute ? '' : `-${index(gap.toMinute)}`;
  return `${index(gap.fromMinute)}${range} ${gap.capture || 'all'} ${gap.reason}`;
};

/** A collector over a spool in memory that follows the real one's rule of covered minutes. */
function fixture(options: { captures?: string[]; covered?: number[] } = {}) {
  const commits: Commit[] = [];
  const covered = new Set((options.covered ?? []).map(at));
  let isFull = false;
  const collector = createMinuteCollector({
    captures: options.captures ?? ['eth0'],
    reporter: silentReporter,
    onCommitted: () => {},
    spool: {
      append(minutes, gaps) {
        if (isFull) throw new CodedError('spool.full', 'full');
        for (const { minute } of minutes) {
          assert.ok(!covered.has(minute), `minute ${minute} is committed twice`);
        }
        for (const { minute } of minutes) covered.add(minute);
        for (const gap of gaps) for (let m = gap.fromMinute; m <= gap.toMinute; m += 60) covered.add(m);
        commits.push({
          minutes: minutes.map(
            (one) => `${(one.minute - firstMinute) / 60} ${one.capture} ${one.observedMs}`,
          ),
          gaps: gaps.map(showGap),
        });
      },
      isCovered: (minute) => covered.has(minute),
      coveredBefore(minute) {
        const before = [...covered].filter((one) => one < minute);
        return before.length > 0 ? before.reduce((a, b) => Math.max(a, b)) : null;
      },
    },
  });
  return {
    commits,
    collector,
    setFull(full: boolean) {
      isFull = full;
    },
    report(index: number, observedMs = 60_000, capture = 'eth0', reason: GapReason | null = null) {
      const minute: TelemetryMinute = { ...sampleMinute(at(index), 1, observedMs), capture };
      collector.report(minute, reason);
    },
  };
}

/** As the sensor starts for the first time, in the middle of minute 0. */
function started(options: Parameters<typeof fixture>[0] = {}) {
  const f = fixture(options);
  f.collector.start(ms(0, 20));
  for (const capture of options.captures ?? ['eth0']) f.collector.listening(capture, ms(0, 20));
  return f;
}

test('the first minute is partial and named by a gap, the next are whole, each in one upload', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(ms(1, 1));
  assert.equal(f.commits.length, 0, 'reports have two seconds after the end of a minute');
  f.collector.tick(ms(1, 2));
  f.report(1);
  f.collector.tick(ms(2, 2));
  assert.deepEqual(f.commits, [
    { minutes: ['0 eth0 40000'], gaps: ['0 eth0 sensor_down'] },
    { minutes: ['1 eth0 60000'], gaps: [] },
  ]);
});

test('a minute waits for all captures and goes as one upload', () => {
  const f = started({ captures: ['eth0', 'br0'] });
  f.report(0, 40_000, 'eth0');
  f.collector.tick(ms(1, 3));
  assert.equal(f.commits.length, 0);
  f.report(0, 40_000, 'br0');
  f.collector.tick(ms(1, 4));
  assert.deepEqual(
    f.commits.map((commit) => commit.minutes),
    [['0 eth0 40000', '0 br0 40000']],
  );
});

test('a sensor that was down names exactly the minutes it missed when it starts', () => {
  const f = fixture({ covered: [-9, -8, -7] });
  f.collector.start(ms(0, 20));
  assert.deepEqual(f.commits, [{ minutes: [], gaps: ['-6--1 all sensor_down'] }]);
});

test('a sensor that was stopped and started within a minute does not report that minute twice', () => {
  const f = started({ covered: [-1, 0] });
  f.report(0, 20_000);
  f.report(1);
  f.collector.tick(ms(2, 2));
  assert.deepEqual(f.commits, [{ minutes: ['1 eth0 60000'], gaps: [] }]);
});

test('a capture that failed is a gap of that capture until it listens again', () => {
  const f = started({ captures: ['eth0', 'br0'] });
  f.report(0, 40_000, 'eth0');
  f.report(0, 5_000, 'br0', 'capture_failed');
  f.collector.failed('br0');
  f.collector.tick(ms(1, 2));
  f.report(1);
  f.collector.tick(ms(2, 2));
  f.collector.listening('br0', ms(2, 10));
  f.report(2);
  f.report(2, 50_000, 'br0');
  f.collector.tick(ms(3, 2));
  assert.deepEqual(f.commits, [
    { minutes: ['0 eth0 40000', '0 br0 5000'], gaps: ['0 eth0 sensor_down', '0 br0 capture_failed'] },
    { minutes: ['1 eth0 60000'], gaps: ['1 br0 capture_failed'] },
    { minutes: ['2 eth0 60000', '2 br0 50000'], gaps: ['2 br0 capture_failed'] },
  ]);
});

test('a capture that says nothing is given up after half a minute, and its late report is not taken', () => {
  const f = started();
  for (let tick = 0; tick < 70; tick += 1) f.collector.tick(ms(1, 2) + tick * 500);
  assert.deepEqual(f.commits, [{ minutes: [], gaps: ['0 eth0 capture_failed'] }]);
  f.report(0, 40_000);
  f.report(1);
  f.collector.tick(ms(2, 2));
  assert.deepEqual(f.commits.at(-1), { minutes: ['1 eth0 60000'], gaps: [] });
});

test('a process that stood still for minutes takes all of them when it goes on', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(ms(5, 30));
  for (const index of [1, 2, 3, 4]) f.report(index);
  f.collector.tick(ms(5, 31));
  assert.deepEqual(
    f.commits.flatMap((commit) => commit.minutes),
    ['0 eth0 40000', '1 eth0 60000', '2 eth0 60000', '3 eth0 60000', '4 eth0 60000'],
  );
});

test('a clock that jumps ahead leaves one exact gap, however far', () => {
  const f = started();
  f.report(0, 30_000, 'eth0', 'clock_step');
  f.collector.listening('eth0', ms(5_000_000, 50));
  f.collector.tick(ms(5_000_000, 50));
  f.report(5_000_000, 10_000, 'eth0', 'clock_step');
  f.collector.tick(ms(5_000_001, 2));
  assert.deepEqual(f.commits, [
    { minutes: ['0 eth0 30000'], gaps: ['0 eth0 clock_step'] },
    { minutes: [], gaps: ['1-4999999 all clock_step'] },
    { minutes: ['5000000 eth0 10000'], gaps: ['5000000 eth0 clock_step'] },
  ]);
});

test('a clock that goes back never has a minute counted twice: minutes that come again are named', () => {
  const f = started();
  f.report(0, 40_000);
  f.report(1);
  f.report(2);
  f.collector.tick(ms(3, 2));
  f.report(3, 10_000, 'eth0', 'clock_step');
  f.collector.listening('eth0', ms(1, 5));
  f.report(1, 55_000, 'eth0', 'clock_step');
  f.report(2);
  f.report(3);
  f.collector.tick(ms(4, 2));
  f.report(4);
  f.collector.tick(ms(5, 2));
  assert.deepEqual(f.commits.slice(3), [
    { minutes: [], gaps: ['1 eth0 clock_step'] },
    { minutes: [], gaps: ['2 eth0 clock_step'] },
    { minutes: ['3 eth0 59999'], gaps: ['3 eth0 clock_step'] },
    { minutes: ['4 eth0 60000'], gaps: [] },
  ]);
});

test('NET-7.3: while the disk is full nothing is collected; the paused minutes are one exact gap afterwards', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(ms(1, 2));
  f.setFull(true);
  for (const index of [1, 2, 3]) {
    f.report(index);
    f.collector.tick(ms(index + 1, 2));
  }
  f.setFull(false);
  f.report(4);
  f.collector.tick(ms(5, 2));
  assert.deepEqual(f.commits.slice(1), [{ minutes: ['4 eth0 60000'], gaps: ['1-3 all storage_full'] }]);
});

test('a clock that goes back while the sensor is down: minutes that were collected are not collected again', () => {
  const f = started({ covered: [-3, -2, -1, 0, 1, 2] });
  f.report(0, 40_000);
  for (const index of [1, 2, 3]) f.report(index);
  f.collector.tick(ms(4, 2));
  assert.deepEqual(f.commits, [
    { minutes: [], gaps: ['1 all clock_step'] },
    { minutes: [], gaps: ['2 all clock_step'] },
    { minutes: ['3 eth0 60000'], gaps: [] },
  ]);
});

test('a clock that starts in 1970 and is then set leaves what was collected before alone', () => {
  const f = fixture({ covered: [-3, -2, -1] });
  f.collector.start(20_000);
  f.collector.listening('eth0', 20_000);
  f.collector.report({ ...sampleMinute(0, 1, 30_000), capture: 'eth0' }, 'clock_step');
  f.collector.listening('eth0', ms(2, 50));
  f.collector.tick(ms(2, 50));
  f.report(2, 10_000, 'eth0', 'clock_step');
  f.collector.tick(ms(3, 2));
  assert.deepEqual(f.commits.slice(1), [
    { minutes: [], gaps: ['0-1 all clock_step'] },
    { minutes: ['2 eth0 10000'], gaps: ['2 eth0 clock_step'] },
  ]);
});

test('NET-7.3: a minute that found no room is tried again every ten seconds, and is whole when there is room in time', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(ms(1, 2));
  f.setFull(true);
  f.report(1);
  f.collector.tick(ms(2, 2));
  f.setFull(false);
  for (let tick = 1; tick <= 19; tick += 1) f.collector.tick(ms(2, 2) + tick * 500);
  assert.equal(f.commits.length, 1);
  f.collector.tick(ms(2, 12));
  assert.deepEqual(f.commits.slice(1), [{ minutes: ['1 eth0 60000'], gaps: [] }]);
});

test('an orderly stop commits the whole minutes and then the open one as partial', () => {
  const f = started();
  f.report(0, 40_000);
  f.report(1);
  f.report(2, 12_000, 'eth0', 'sensor_down');
  f.collector.finish();
  assert.deepEqual(f.commits, [
    { minutes: ['0 eth0 40000'], gaps: ['0 eth0 sensor_down'] },
    { minutes: ['1 eth0 60000'], gaps: [] },
    { minutes: ['2 eth0 12000'], gaps: ['2 eth0 sensor_down'] },
  ]);
});
