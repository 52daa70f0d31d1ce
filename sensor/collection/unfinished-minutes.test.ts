import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { at, collectorFixture as fixture, ms } from '#sensor/testing/collector-fixture.ts';
import { sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { steadyMoment } from '#sensor/testing/steady-moment.ts';

/** A sensor that listens from the start of minute 0, and has seen two windows of it when it is killed. */
function killed(t: TestContext, names: string[] = []) {
  const stateDirectory = temporaryFolder(t);
  const f = fixture({ stateDirectory, names });
  f.collector.start(steadyMoment(ms(0)));
  f.collector.listening('eth0', ms(0), 0);
  f.window(0, 0, 1000);
  f.window(0, 10, 400);
  return { ...f, stateDirectory };
}

test('NET-2.4.2: what a killed sensor saw of a minute is added to what the next one sees of it', (t) => {
  const { stateDirectory } = killed(t);
  const f = fixture({ stateDirectory });
  f.collector.start(steadyMoment(ms(0, 25)));
  f.collector.listening('eth0', ms(0, 25), 0);
  const [host] = sampleMinute(0, 70).hosts;
  f.collector.report(
    { ...sampleMinute(at(0), 700, 35_000), hosts: [{ ...host!, deviceKey: 'br0|a' }] },
    null,
  );
  f.collector.tick(steadyMoment(ms(1, 2)));
  assert.deepEqual(f.commits, [{ minutes: ['0 eth0 55000'], gaps: ['0 eth0 sensor_down'] }]);
  const [{ totals, hosts }] = f.stored as [TelemetryMinute];
  assert.equal(totals.ipBytes, 1000 + 400 + 700);
  assert.equal(totals.detailTruncated, 2 * 9, 'packets of windows have no applications');
  assert.deepEqual([hosts[0]!.rxBytes, hosts[0]!.deviceKey], [100 + 40 + 70, 'br0|a']);
});

test('NET-2.4.2: what a killed sensor saw is committed at a start in a later minute, and the others are a gap', (t) => {
  const { stateDirectory } = killed(t);
  const last = { bootId: 'boot', offsetMs: 0, throughMinute: at(-3) };
  const f = fixture({ captures: ['eth0', 'br0'], stateDirectory, last });
  f.collector.start(steadyMoment(ms(3, 5)));
  assert.deepEqual(f.commits, [
    { minutes: [], gaps: ['-2--1 all sensor_down'] },
    { minutes: ['0 eth0 20000'], gaps: ['0 eth0 sensor_down', '0 br0 sensor_down'] },
    { minutes: [], gaps: ['1-2 all sensor_down'] },
  ]);
});

test('a killed sensor that starts with other interfaces has a gap for each, and keeps what it saw', (t) => {
  for (const minute of [0, 1]) {
    const { stateDirectory } = killed(t);
    const f = fixture({ captures: ['br0'], stateDirectory });
    f.collector.start(steadyMoment(ms(minute, 25)));
    f.collector.finish();
    assert.deepEqual(f.commits, [
      {
        minutes: ['0 eth0 20000'],
        gaps: [`0 br0 ${minute === 0 ? 'capture_failed' : 'sensor_down'}`, '0 eth0 sensor_down'],
      },
    ]);
  }
});

test('a sensor that is killed again within the minute keeps both parts of it', (t) => {
  const { stateDirectory } = killed(t);
  const second = fixture({ stateDirectory });
  second.collector.start(steadyMoment(ms(0, 25)));
  second.collector.listening('eth0', ms(0, 25), 0);
  second.window(0, 30, 50);
  const f = fixture({ stateDirectory });
  f.collector.start(steadyMoment(ms(1, 25)));
  assert.deepEqual(f.commits, [{ minutes: ['0 eth0 30000'], gaps: ['0 eth0 sensor_down'] }]);
  assert.equal(f.stored[0]!.totals.ipBytes, 1000 + 400 + 50);
});

test('NET-2.4.2: a sensor that is killed right after a commit does not report that minute twice', (t) => {
  const names: string[] = [];
  const f = killed(t, names);
  const path = join(f.stateDirectory, 'unfinished-minutes.json');
  const before = readFileSync(path);
  f.report(0);
  f.collector.tick(steadyMoment(ms(1, 2)));
  assert.equal(f.commits.length, 1);
  // A window that comes after its minute was committed.
  f.window(0, 50, 5000);
  for (const file of [readFileSync(path), before]) {
    writeFileSync(path, file);
    const next = fixture({ stateDirectory: f.stateDirectory, names });
    next.collector.start(steadyMoment(ms(1, 25)));
    next.report(1, 35_000);
    next.collector.tick(steadyMoment(ms(2, 2)));
    assert.deepEqual(next.commits, [{ minutes: ['1 eth0 35000'], gaps: ['1 eth0 sensor_down'] }]);
    names.splice(1);
  }
});

test('NET-2.4.2: what a killed sensor saw before the clock was set, or before the host started, is left out', (t) => {
  const { stateDirectory } = killed(t);
  const path = join(stateDirectory, 'unfinished-minutes.json');
  const file = readFileSync(path);
  for (const [bootId, aheadMs, text] of [
    ['other', 0, file],
    ['boot', 5000, file],
    ['boot', 0, '{"format":1'],
    ['boot', 0, '{"format":2,"minutes":[]}'],
  ] as const) {
    writeFileSync(path, text);
    const f = fixture({ stateDirectory, bootId });
    f.collector.start({ wallMs: ms(0, 30) + aheadMs, uptimeMs: ms(0, 30) });
    f.report(0, 30_000);
    f.collector.finish();
    assert.equal(f.stored.length, 1);
    assert.equal(f.stored[0]!.totals.ipBytes, 1);
  }
});

const bytesOf = (stored: readonly TelemetryMinute[]) => stored.map(({ totals }) => totals.ipBytes);

test('NET-2.4.2: a minute that the kernel counted is whole although its sensor was killed in it', (t) => {
  const { stateDirectory } = killed(t);
  const f = fixture({ stateDirectory, counted: { minutes: [0] } });
  f.collector.start(steadyMoment(ms(0, 25)));
  f.collector.listening('eth0', ms(0, 25), 0);
  f.report(0, 35_000);
  f.collector.tick(steadyMoment(ms(1, 2)));
  assert.deepEqual(f.commits, [{ minutes: ['0 eth0 60000'], gaps: [] }]);
  assert.deepEqual(bytesOf(f.stored), [1000]);
});

test('NET-2.4.2: minutes that the kernel counted while no sensor ran are no gap', (t) => {
  const { stateDirectory } = killed(t);
  const last = { bootId: 'boot', offsetMs: 0, throughMinute: at(-2) };
  const f = fixture({ captures: ['eth0', 'br0'], stateDirectory, last, counted: { minutes: [0, 1, 2] } });
  f.collector.start(steadyMoment(ms(3, 5)));
  assert.deepEqual(f.commits, [
    { minutes: [], gaps: ['-1 all sensor_down'] },
    ...[0, 1, 2].map((minute) => ({ minutes: [`${minute} eth0 60000`, `${minute} br0 60000`], gaps: [] })),
  ]);
});

test('NET-2.4.2: what a sensor that ends in order has seen of a minute is committed by it alone', (t) => {
  for (const minute of [0, 1]) {
    const names: string[] = [];
    const before = killed(t, names);
    before.report(0, 20_000, 'eth0', 'sensor_down');
    before.collector.finish();
    const f = fixture({ stateDirectory: before.stateDirectory, names });
    f.collector.start(steadyMoment(ms(minute, 25)));
    f.collector.finish();
    assert.deepEqual(bytesOf([...before.stored, ...f.stored]), [1]);
  }
});

/** A sensor that ends in order in the middle of minute 0, which the kernel counts. */
function endedInOrder(t: TestContext, isFull = false) {
  const stateDirectory = temporaryFolder(t);
  const names: string[] = [];
  const f = fixture({ stateDirectory, names, counted: { minutes: [0], half: 0 } });
  f.collector.start(steadyMoment(ms(0)));
  f.collector.listening('eth0', ms(0), 0);
  f.collector.tick(steadyMoment(ms(0, 29)));
  f.setFull(isFull);
  f.report(0, 30_000, 'eth0', 'sensor_down');
  f.collector.finish();
  return { ...f, stateDirectory, names };
}

const lastCommitted = { bootId: 'boot', offsetMs: 0, throughMinute: at(0) };

test('NET-2.4.2: a minute in which a sensor ended in order is whole by the kernel’s counters: its rest is added, and no part is a gap', (t) => {
  for (const isOver of [false, true]) {
    const before = endedInOrder(t);
    assert.deepEqual(before.commits, [{ minutes: ['0 eth0 30000'], gaps: [] }]);

    const { stateDirectory, names } = before;
    const f = fixture({
      stateDirectory,
      names,
      covered: [0],
      last: lastCommitted,
      counted: { minutes: [0] },
    });
    f.collector.start(steadyMoment(ms(isOver ? 1 : 0, 40)));
    if (!isOver) {
      f.collector.listening('eth0', ms(0, 40), 0);
      f.report(0, 20_000);
      f.collector.tick(steadyMoment(ms(1, 2)));
    }
    assert.deepEqual(f.commits, [{ minutes: ['0 eth0 30000'], gaps: [] }]);
    assert.deepEqual(bytesOf([...before.stored, ...f.stored]), [600, 400]);
  }
});

test('NET-2.4.2: a minute that was over when a sensor ended in order has no rest', (t) => {
  const stateDirectory = temporaryFolder(t);
  const before = fixture({ stateDirectory, counted: { minutes: [0] } });
  before.collector.start(steadyMoment(ms(0)));
  before.collector.listening('eth0', ms(0), 0);
  before.report(0);
  before.collector.finish();
  assert.deepEqual(before.commits, [{ minutes: ['0 eth0 60000'], gaps: [] }]);
  const { names } = before;
  const again = { stateDirectory, names, covered: [0], last: lastCommitted };
  const f = fixture({ ...again, counted: { minutes: [0] } });
  f.collector.start(steadyMoment(ms(1, 10)));
  assert.deepEqual(f.commits, []);
});

test('NET-2.4.2: a minute in which a sensor ended in order is a gap where the kernel did not count its rest', (t) => {
  for (const [minute, bootId] of [
    [0, 'boot'],
    [1, 'boot'],
    [1, 'other'],
  ] as const) {
    const { stateDirectory, names } = endedInOrder(t);
    const f = fixture({ stateDirectory, names, bootId, covered: [0], last: lastCommitted });
    f.collector.start(steadyMoment(ms(minute, 40)));
    if (minute === 0) {
      f.collector.listening('eth0', ms(0, 40), 0);
      f.report(0, 20_000);
      f.collector.tick(steadyMoment(ms(1, 2)));
    }
    const minutes = minute === 0 ? ['0 eth0 20000'] : [];
    assert.deepEqual(f.commits, [{ minutes, gaps: ['0 eth0 sensor_down'] }]);
  }
});

test('NET-7.3: what found no room as a sensor ended is counted at the next start, whole', (t) => {
  const { stateDirectory, names, commits } = endedInOrder(t, true);
  assert.deepEqual(commits, []);
  const last = { ...lastCommitted, throughMinute: at(-1) };
  const f = fixture({ stateDirectory, names, last, counted: { minutes: [0] } });
  f.collector.start(steadyMoment(ms(1, 40)));
  assert.deepEqual(f.commits, [{ minutes: ['0 eth0 60000'], gaps: [] }]);
});

test('where it is unknown what was committed of a minute, the kernel’s counters are not added to it', (t) => {
  const last = { bootId: 'boot', offsetMs: 0, throughMinute: at(0) };
  const f = fixture({ stateDirectory: temporaryFolder(t), covered: [0], last, counted: { minutes: [0] } });
  f.collector.start(steadyMoment(ms(0, 40)));
  f.collector.listening('eth0', ms(0, 40), 0);
  f.report(0, 20_000);
  f.collector.tick(steadyMoment(ms(1, 2)));
  assert.deepEqual(f.commits, [{ minutes: ['0 eth0 20000'], gaps: ['0 eth0 sensor_down'] }]);
});

test('what a filter dropped is committed with its uplink’s minutes, once, over kills, stops and full disks, also of addresses without a packet', (t) => {
  const names: string[] = [];
  const stateDirectory = temporaryFolder(t);
  /** As the kernel has it: by minute, bytes of one address on the way in. */
  const kernel = new Map<number, number>();
  const dropped = (capture: string, minute: number) => {
    const packets = capture === 'eth0' ? (kernel.get(minute) ?? 0) : 0;
    const none = { rxBytes: 0, txBytes: 0, rxPackets: 0, txPackets: 0 };
    return new Map(
      packets > 0 ? [['192.0.2.77', { ...none, rxBytes: packets * 60, rxPackets: packets }]] : [],
    );
  };
  const stored: TelemetryMinute[] = [];
  const sensor = (covered: number[] = [], counted: number[] = []) => {
    const f = fixture({ stateDirectory, names, covered, dropped, counted: { minutes: counted } });
    return { ...f, take: () => stored.push(...f.stored.splice(0)) };
  };
  const first = sensor();
  first.collector.start(steadyMoment(ms(0)));
  first.collector.listening('eth0', ms(0), 0);
  kernel.set(at(0), 5);
  first.report(0);
  first.collector.tick(steadyMoment(ms(1, 2)));
  kernel.set(at(1), 7);
  first.window(1, 0, 1000);
  first.take();
  // Killed within minute 1, and the next one stops within it, in order: a part is committed.
  const second = sensor([0]);
  second.collector.start(steadyMoment(ms(1, 20)));
  second.collector.listening('eth0', ms(1, 20), 0);
  kernel.set(at(1), 9);
  second.report(1, 20_000);
  second.collector.finish();
  second.take();
  kernel.set(at(1), 20);
  const third = sensor([0, 1]);
  third.collector.start(steadyMoment(ms(1, 50)));
  third.collector.listening('eth0', ms(1, 50), 0);
  third.report(1, 9000);
  third.collector.tick(steadyMoment(ms(2, 2)));
  third.take();
  // A minute that finds no room on disk is told by the sensor that comes after a kill.
  kernel.set(at(2), 3);
  third.setFull(true);
  third.report(2);
  third.collector.tick(steadyMoment(ms(3, 2)));
  third.window(3, 0, 10);
  const fourth = sensor([0, 1], [2]);
  fourth.collector.start(steadyMoment(ms(3, 20)));
  fourth.take();
  const sums = new Map<number, number>();
  for (const { minute, hosts } of stored)
    for (const host of hosts)
      if (host.address === '192.0.2.77') {
        assert.equal(host.packets, 0);
        sums.set(minute, (sums.get(minute) ?? 0) + host.dropped!.rxPackets);
      }
  assert.deepEqual(
    [0, 1, 2].map((index) => sums.get(at(index))),
    [5, 20, 3],
  );
});
