import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryGap,
  type TelemetryMinute,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { firstMinute, sampleMinute, temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createSpool, type Spool } from './index.ts';

const at = (index: number) => firstMinute + index * 60;
const nowMs = at(60) * 1000;
const stamp = (aheadSeconds: number) => ({ bootId: 'boot', offsetMs: aheadSeconds * 1000, since: at(0) });
const downGap = (from: number, to: number): TelemetryGap => ({
  ...{ fromMinute: at(from), toMinute: at(to), capture: '', reason: 'sensor_down' },
});

function openSpool(directory: string): Spool {
  const options = {
    directory,
    bytesMax: 16 * 1024 * 1024,
    sensorVersion: '0.1.0',
    kinds: recordKinds,
    reporter: silentReporter,
  };
  const spool = createSpool({ ...options, clock: createTestClock(nowMs) });
  spool.open();
  return spool;
}

let commits = 0;
function append(spool: Spool, minutes: TelemetryMinute[], gaps: TelemetryGap[] = [], aheadSeconds = 0): void {
  commits += 1;
  spool.append(minutes, gaps, { commit: `${commits}`, stampedBy: stamp(aheadSeconds) });
}

const commit = (spool: Spool, minutes: number[], gaps: TelemetryGap[] = [], aheadSeconds = 0) =>
  append(
    spool,
    minutes.map((index) => sampleMinute(at(index), 1)),
    gaps,
    aheadSeconds,
  );

/** Settles and delivers everything, and shows what was delivered. */
function deliver(spool: Spool): string[] {
  const shown: string[] = [];
  for (let upload = spool.oldest(); upload; upload = spool.oldest()) {
    if (spool.settle(upload)) continue;
    const { minutes, gaps } = decodeUpload(decompressUpload(upload.body, 'zstd'));
    const index = (minute: number) => (minute - firstMinute) / 60;
    const told = gaps.map(
      (gap) => `${index(gap.fromMinute)}-${index(gap.toMinute)} ${gap.capture || 'all'} ${gap.reason}`,
    );
    shown.push([...minutes.map((one) => index(one.minute)), ...told].join(', '));
    spool.acknowledge(upload, 'accepted');
  }
  return shown;
}

test('NET-2.4.2: a minute that was delivered before is named when it is told of again, and once', (t) => {
  const spool = openSpool(temporaryFolder(t));
  t.after(() => spool.close());
  for (const minutes of [[1], [2], [1], [1], [3]]) commit(spool, minutes);
  assert.deepEqual(deliver(spool), ['1', '2', '1, 1-1 all clock_step', '1, 1-1 all clock_step', '3']);
});

test('NET-2.4.2: the parts of a minute in which the sensor was restarted are named by its own gaps alone, and whole by the kernel’s counters without any', (t) => {
  const spool = openSpool(temporaryFolder(t));
  t.after(() => spool.close());
  const part = (observedMs: number, capture = 'eth0') => ({ ...sampleMinute(at(1), 1, observedMs), capture });
  const ofCapture = (capture: string): TelemetryGap => ({ ...downGap(1, 1), capture });
  append(spool, [part(10_000)], [ofCapture('eth0')]);
  append(spool, [part(48_000)], [ofCapture('eth0')]);
  append(spool, [part(1000), part(60_000, 'br0')], [ofCapture('eth0')]);
  append(spool, [part(1000)], [downGap(1, 1)]);
  for (const half of [30_000, 30_000]) append(spool, [sampleMinute(at(2), 1, half)]);
  assert.deepEqual(deliver(spool), [
    '1, 1-1 eth0 sensor_down',
    '1, 1-1 eth0 sensor_down',
    '1, 1, 1-1 eth0 sensor_down, 1-1 all clock_step',
    '1, 1-1 all clock_step',
    ...['2', '2'],
  ]);
});

test('a minute that a wrong clock stamped and that is moved before it is sent is not in the way of the right one', (t) => {
  const spool = openSpool(temporaryFolder(t));
  t.after(() => spool.close());
  commit(spool, [12], [], 600);
  commit(spool, [10], [downGap(11, 13)]);
  commit(spool, [], [downGap(11, 13)]);
  commit(spool, [12]);
  assert.equal(spool.restamp(spool.oldest()!, stamp(0), nowMs), true);
  assert.deepEqual(deliver(spool), ['2', '10, 11-13 all sensor_down', '11-13 all sensor_down', '12']);
});

test('a gap of unobserved minutes names no delivered minute, and is not sent where nothing is left of it', (t) => {
  const spool = openSpool(temporaryFolder(t));
  t.after(() => spool.close());
  for (const minutes of [[2], [3], [5]]) commit(spool, minutes);
  const ofOne: TelemetryGap = { ...downGap(3, 3), capture: 'br0' };
  commit(spool, [], [downGap(1, 6), ofOne, { ...downGap(5, 5), reason: 'refused' }]);
  commit(spool, [], [downGap(2, 3)]);
  commit(spool, [7]);
  assert.deepEqual(deliver(spool), [
    '2',
    '3',
    '5',
    '1-1 all sensor_down, 4-4 all sensor_down, 6-6 all sensor_down, 3-3 br0 sensor_down, 5-5 all refused',
    '7',
  ]);
});

test('what was settled is settled after a death too, under the number that it was sent by', (t) => {
  const directory = temporaryFolder(t);
  const spool = openSpool(directory);
  for (const minutes of [[1], [1]]) commit(spool, minutes);
  spool.acknowledge(spool.oldest()!, 'accepted');
  const { sequence } = spool.oldest()!;
  assert.equal(spool.settle(spool.oldest()!), true);
  const sent = spool.oldest()!;
  assert.equal(sent.sequence, sequence);
  spool.close();
  const again = openSpool(directory);
  t.after(() => again.close());
  assert.equal(again.settle(again.oldest()!), false);
  assert.deepEqual(again.oldest()!.body, sent.body);
});

test('a minute that is too large for one upload is no minute told of twice, but where it was told of before', (t) => {
  const spool = openSpool(temporaryFolder(t));
  t.after(() => spool.close());
  const large = (index: number) =>
    Array.from({ length: 65 }, (_, i) => ({ ...sampleMinute(at(index), 1), capture: `eth${i}` }));
  for (const [i, minutes] of [large(1), large(1), [sampleMinute(at(1), 1)], large(2)].entries())
    spool.append(minutes, [], { commit: `large ${i}`, stampedBy: stamp(0) });
  const gaps = deliver(spool).map((upload) =>
    upload.split(', ').filter((part) => part.includes('clock_step')),
  );
  assert.deepEqual(gaps, [[], [], ['1-1 all clock_step'], [], ['1-1 all clock_step'], [], []]);
});
