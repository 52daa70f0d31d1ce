import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Moment } from '#sensor/host-time/index.ts';
import { at, collectorFixture as fixture, ms } from '#sensor/testing/collector-fixture.ts';
import { firstMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';

/** A sensor that starts for the first time, in the middle of minute 0. */
function started(options: Parameters<typeof fixture>[0] = {}) {
  const f = fixture(options);
  f.collector.start(steadyMoment(ms(0, 20)));
  for (const capture of options.captures ?? ['eth0']) f.collector.listening(capture, ms(0, 20), 0);
  return f;
}

test('the first minute is partial and has a gap, the next are complete, each in one upload', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(steadyMoment(ms(1, 1)));
  assert.equal(f.commits.length, 0, 'reports may take two seconds after the end of a minute');
  f.collector.tick(steadyMoment(ms(1, 2)));
  f.report(1);
  f.collector.tick(steadyMoment(ms(2, 2)));
  assert.deepEqual(f.commits, [
    { minutes: ['0 eth0 40000'], gaps: ['0 eth0 sensor_down'] },
    { minutes: ['1 eth0 60000'], gaps: [] },
  ]);
});

test('a minute waits for all captures and goes as one upload', () => {
  const f = started({ captures: ['eth0', 'br0'] });
  f.report(0, 40_000, 'eth0');
  f.collector.tick(steadyMoment(ms(1, 3)));
  assert.equal(f.commits.length, 0);
  f.report(0, 40_000, 'br0');
  f.collector.tick(steadyMoment(ms(1, 4)));
  assert.deepEqual(
    f.commits.map((commit) => commit.minutes),
    [['0 eth0 40000', '0 br0 40000']],
  );
});

test('a sensor that was down reports exactly the missed minutes as a gap at its start', () => {
  const f = fixture({ covered: [-9, -8, -7] });
  f.collector.start(steadyMoment(ms(0, 20)));
  assert.deepEqual(f.commits, [{ minutes: [], gaps: ['-6--1 all sensor_down'] }]);
});

test('NET-2.4.2: a sensor that was stopped and started within a minute reports both parts of it, each with a gap', () => {
  for (const last of [{ bootId: 'boot', offsetMs: 0, throughMinute: at(0) }, undefined]) {
    const f = started({ covered: [-1, 0], ...(last && { last }) });
    f.report(0, 38_000);
    f.report(1);
    f.collector.tick(steadyMoment(ms(2, 2)));
    assert.deepEqual(f.commits, [
      { minutes: ['0 eth0 38000'], gaps: ['0 eth0 sensor_down'] },
      { minutes: ['1 eth0 60000'], gaps: [] },
    ]);
  }
});

test('a capture that failed is a gap of that capture until it listens again', () => {
  const f = started({ captures: ['eth0', 'br0'] });
  f.report(0, 40_000, 'eth0');
  f.report(0, 5_000, 'br0', 'capture_failed');
  f.collector.failed('br0');
  f.collector.tick(steadyMoment(ms(1, 2)));
  f.report(1);
  f.collector.tick(steadyMoment(ms(2, 2)));
  f.collector.listening('br0', ms(2, 10), 0);
  f.report(2);
  f.report(2, 50_000, 'br0');
  f.collector.tick(steadyMoment(ms(3, 2)));
  assert.deepEqual(f.commits, [
    { minutes: ['0 eth0 40000', '0 br0 5000'], gaps: ['0 eth0 sensor_down', '0 br0 capture_failed'] },
    { minutes: ['1 eth0 60000'], gaps: ['1 br0 capture_failed'] },
    { minutes: ['2 eth0 60000', '2 br0 50000'], gaps: ['2 br0 capture_failed'] },
  ]);
});

test('a capture without a report is given up after half a minute, and its late report is ignored', () => {
  const f = started();
  for (let tick = 0; tick < 70; tick += 1) f.collector.tick(steadyMoment(ms(1, 2) + tick * 500));
  assert.deepEqual(f.commits, [{ minutes: [], gaps: ['0 eth0 capture_failed'] }]);
  f.report(0, 40_000);
  f.report(1);
  f.collector.tick(steadyMoment(ms(2, 2)));
  assert.deepEqual(f.commits.at(-1), { minutes: ['1 eth0 60000'], gaps: [] });
});

test('a process that was stopped for minutes commits all of them when it continues', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(steadyMoment(ms(5, 30)));
  for (const index of [1, 2, 3, 4]) f.report(index);
  f.collector.tick(steadyMoment(ms(5, 31)));
  assert.deepEqual(
    f.commits.flatMap((commit) => commit.minutes),
    ['0 eth0 40000', '1 eth0 60000', '2 eth0 60000', '3 eth0 60000', '4 eth0 60000'],
  );
});

test('NET-7.3: while the disk is full nothing is collected; afterwards the paused minutes are one exact gap', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(steadyMoment(ms(1, 2)));
  f.setFull(true);
  for (const index of [1, 2, 3]) {
    f.report(index);
    f.collector.tick(steadyMoment(ms(index + 1, 2)));
  }
  f.setFull(false);
  f.report(4);
  f.collector.tick(steadyMoment(ms(5, 2)));
  assert.deepEqual(f.commits.slice(1), [{ minutes: ['4 eth0 60000'], gaps: ['1-3 all storage_full'] }]);
});

test('NET-7.3: a minute without room is retried every ten seconds, and is complete if room appears in time', () => {
  const f = started();
  f.report(0, 40_000);
  f.collector.tick(steadyMoment(ms(1, 2)));
  f.setFull(true);
  f.report(1);
  f.collector.tick(steadyMoment(ms(2, 2)));
  f.setFull(false);
  for (let tick = 1; tick <= 19; tick += 1) f.collector.tick(steadyMoment(ms(2, 2) + tick * 500));
  assert.equal(f.commits.length, 1);
  f.collector.tick(steadyMoment(ms(2, 12)));
  assert.deepEqual(f.commits.slice(1), [{ minutes: ['1 eth0 60000'], gaps: [] }]);
});

test('an orderly stop commits the complete minutes, then the open one as partial', () => {
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

/** Uptime at the start of minute 0 of the right clock. */
const bootMs = 1_000_000;
/** Both clocks after `seconds`, with a wall clock that is `aheadSeconds` ahead. */
const moment = (seconds: number, aheadSeconds = 0): Moment => ({
  wallMs: ms(0, seconds + aheadSeconds),
  uptimeMs: bootMs + seconds * 1000,
});

/** A sensor that started 20 s into minute 0, with a clock that the test sets. */
function timed(options: Parameters<typeof fixture>[0] = {}) {
  const f = fixture(options);
  const listen = (at: Moment) => {
    for (const capture of options.captures ?? ['eth0']) {
      f.collector.listening(capture, at.wallMs, at.wallMs - at.uptimeMs);
    }
  };
  return { ...f, listen, tick: (at: Moment) => f.collector.tick(at) };
}

for (const [name, ahead] of [
  ['two hours', 7200],
  ['ten years', 10 * 365 * 86_400],
] as const)
  test(`a clock step of ${name} ahead covers none of the skipped minutes, and a step back loses nothing`, () => {
    const f = timed();
    f.collector.start(moment(20));
    f.listen(moment(20));
    f.report(0, 30_000, 'eth0', 'clock_step');
    f.tick(moment(50, ahead));
    f.listen(moment(50, ahead));
    f.report(ahead / 60, 10_000, 'eth0', 'clock_step');
    f.tick(moment(63, ahead));
    f.report(ahead / 60 + 1, 15_000, 'eth0', 'clock_step');
    f.tick(moment(75));
    f.listen(moment(75));
    f.report(1, 45_000, 'eth0', 'clock_step');
    f.tick(moment(122));
    f.report(2);
    f.tick(moment(182));
    const there = ahead / 60;
    assert.deepEqual(f.commits, [
      { minutes: ['0 eth0 30000'], gaps: ['0 eth0 clock_step'] },
      { minutes: [`${there} eth0 10000`], gaps: [`${there} eth0 clock_step`] },
      { minutes: [`${there + 1} eth0 15000`], gaps: [`${there + 1} eth0 clock_step`] },
      { minutes: ['1 eth0 45000'], gaps: ['1 eth0 clock_step'] },
      { minutes: ['2 eth0 60000'], gaps: [] },
    ]);
  });

test('NET-2.4.2: after a clock step back, frames in an already reported minute are kept', () => {
  const f = timed();
  f.collector.start(moment(0));
  f.listen(moment(0));
  for (const index of [0, 1, 2]) {
    f.report(index);
    f.tick(moment(index * 60 + 62));
  }
  f.report(3, 10_000, 'eth0', 'clock_step');
  f.tick(moment(190, -120));
  f.listen(moment(190, -120));
  f.report(1, 50_000, 'eth0', 'clock_step');
  f.report(2);
  f.report(3);
  f.tick(moment(370, -120));
  f.report(4);
  f.tick(moment(430, -120));
  assert.deepEqual(f.commits.slice(3), [
    { minutes: ['3 eth0 10000'], gaps: ['3 eth0 clock_step'] },
    { minutes: ['1 eth0 50000'], gaps: ['1 eth0 clock_step'] },
    { minutes: ['2 eth0 60000'], gaps: [] },
    { minutes: ['3 eth0 60000'], gaps: [] },
    { minutes: ['4 eth0 60000'], gaps: [] },
  ]);
});

test('a step that captures see one after the other keeps the parts of each clock together', () => {
  const f = timed({ captures: ['eth0', 'br0'] });
  f.collector.start(moment(0));
  f.listen(moment(0));
  f.report(0, 30_000, 'eth0', 'clock_step');
  const after = moment(30, 600);
  f.collector.listening('eth0', after.wallMs, after.wallMs - after.uptimeMs);
  f.tick(moment(30.5, 600));
  assert.equal(f.commits.length, 0, 'br0 still counts by the clock before');
  f.report(0, 30_100, 'br0', 'clock_step');
  f.collector.listening('br0', after.wallMs + 100, after.wallMs - after.uptimeMs);
  f.tick(moment(31, 600));
  f.report(10, 30_000, 'eth0', 'clock_step');
  f.report(10, 29_900, 'br0', 'clock_step');
  f.tick(moment(63, 600));
  assert.deepEqual(
    f.commits.map((commit) => commit.minutes),
    [
      ['0 eth0 30000', '0 br0 30100'],
      ['10 eth0 30000', '10 br0 29900'],
    ],
  );
});

test('a suspended host is a gap of exactly the passed minutes, also when its clock is set at resume', () => {
  for (const wokenAhead of [0, 30]) {
    const f = timed();
    f.collector.start(moment(0));
    f.listen(moment(0));
    f.tick(moment(29));
    f.report(0, 30_000, 'eth0', 'clock_step');
    const woken = moment(7290, wokenAhead);
    f.listen(woken);
    f.tick(woken);
    const index = 121 + (wokenAhead > 0 ? 1 : 0);
    f.report(index, 30_000, 'eth0', 'clock_step');
    f.tick(moment(7333, wokenAhead));
    const gaps = f.commits.flatMap((commit) => commit.gaps).filter((gap) => gap.endsWith('sensor_down'));
    // By the clock that was set, the sleep began in minute 0, which the spool has stored already.
    const expected = wokenAhead === 0 ? ['1-120'] : ['0-120', '121'];
    assert.deepEqual(
      gaps,
      expected.map((minutes) => `${minutes} all sensor_down`),
    );
  }
});

test('a sensor that restarts after a clock step has a gap only for the time it was down', () => {
  const last = { bootId: 'boot', offsetMs: ms(0) - bootMs, throughMinute: at(2) };
  for (const [ahead, gaps] of [
    [10 * 365 * 86_400, [`${5_256_000 + 3}-${5_256_000 + 4} all sensor_down`]],
    [7200, ['123-124 all sensor_down']],
    [-7200, ['-117--116 all sensor_down']],
    [0, ['3-4 all sensor_down']],
  ] as const) {
    const f = timed({ covered: [0, 1, 2], last });
    f.collector.start(moment(5 * 60 + 20, ahead));
    assert.deepEqual(
      f.commits.flatMap((commit) => commit.gaps),
      gaps,
      `${ahead} s ahead`,
    );
  }
  // The commit that ended at 2:50 by the present clock does not cover minute 2, so the gap includes it.
  const uneven = timed({ covered: [0, 1, 2], last });
  uneven.collector.start(moment(5 * 60 + 20, -10));
  assert.deepEqual(uneven.commits[0]?.gaps, ['2-4 all sensor_down']);
  const slewed = timed({ covered: [0, 1, 2], last: { ...last, offsetMs: last.offsetMs + 900 } });
  slewed.collector.start(moment(5 * 60 + 20));
  assert.deepEqual(slewed.commits[0]?.gaps, ['3-4 all sensor_down']);
});

test('a sensor that starts in another boot has a gap since its latest commit, also when a clock that was ahead stamped later minutes', () => {
  const last = { bootId: 'earlier', offsetMs: 0 };
  const ahead = fixture({ covered: [0, 1, 2, 4], last: { ...last, throughMinute: at(2) } });
  ahead.collector.start(moment(6 * 60 + 20));
  assert.deepEqual(ahead.commits[0]?.gaps, ['3-5 all sensor_down']);
  const behind = fixture({ covered: [0, 1, 2, 4], last: { ...last, throughMinute: at(-3000) } });
  behind.collector.start(moment(6 * 60 + 20));
  assert.deepEqual(behind.commits[0]?.gaps, ['5 all sensor_down']);
});

test('a clock that is slewed for hours is never mistaken for a clock step', () => {
  const f = timed();
  f.collector.start(moment(0));
  f.listen(moment(0));
  // 500 ppm for four hours: 7.2 s.
  for (let minute = 0; minute < 240; minute += 1) {
    f.report(minute);
    f.tick(moment(minute * 60 + 62, minute * 0.03));
  }
  assert.deepEqual(
    f.commits.flatMap((commit) => commit.gaps),
    [],
  );
  assert.equal(f.commits.length, 240);
});

test('with a clock that starts in 1970, missed time is a gap once the clock is set, and heard minutes stay', () => {
  const f = fixture({ covered: [-3, -2, -1] });
  const at1970 = (seconds: number): Moment => ({ wallMs: seconds * 1000, uptimeMs: seconds * 1000 });
  const set = (seconds: number): Moment => ({ wallMs: ms(2, seconds), uptimeMs: seconds * 1000 });
  f.collector.start(at1970(20));
  f.collector.listening('eth0', 20_000, 0);
  f.collector.report({ ...sampleMinute(0, 1, 30_000), capture: 'eth0' }, 'clock_step');
  f.collector.tick(set(50));
  f.collector.listening('eth0', ms(2, 50), ms(2));
  f.report(2, 10_000, 'eth0', 'clock_step');
  f.collector.tick(set(63));
  const heard1970 = `${-firstMinute / 60} eth0`;
  assert.deepEqual(f.commits, [
    { minutes: [], gaps: ['0-1 all sensor_down'] },
    { minutes: [`${heard1970} 30000`], gaps: [`${heard1970} clock_step`] },
    { minutes: ['2 eth0 10000'], gaps: ['2 eth0 clock_step'] },
  ]);
});
