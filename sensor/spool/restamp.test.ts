import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryGap,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { firstMinute, sampleMinute } from '#sensor/testing/sample-minutes.ts';
import { createSpool, type PendingUpload, type Spool } from './index.ts';

const bootMs = (firstMinute - 600) * 1000;
/** The clock of this boot, so far ahead of the right one. */
const clockAhead = (seconds: number, bootId = 'boot') => ({ bootId, offsetMs: bootMs + seconds * 1000 });
const at = (index: number, aheadSeconds = 0) => firstMinute + index * 60 + aheadSeconds;
const nowMs = at(10) * 1000;

function openSpool(
  t: TestContext,
  directory = mkdtempSync(join(tmpdir(), 'svc-restamp-')),
): Spool & { directory: string } {
  const options = {
    directory,
    bytesMax: 16 * 1024 * 1024,
    sensorVersion: '0.1.0',
    kinds: recordKinds,
    reporter: silentReporter,
  };
  const spool = createSpool({ ...options, clock: createTestClock(nowMs) });
  spool.open();
  t.after(() => {
    spool.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { ...spool, directory };
}

const contentOf = (upload: PendingUpload): TelemetryUpload =>
  decodeUpload(decompressUpload(upload.body, 'zstd'));
const show = (upload: PendingUpload) => {
  const { minutes, gaps } = contentOf(upload);
  const index = (minute: number) => (minute - firstMinute) / 60;
  return {
    minutes: minutes.map((one) => index(one.minute)),
    gaps: gaps.map((gap) => `${index(gap.fromMinute)}-${index(gap.toMinute)} ${gap.reason}`),
  };
};
/** One minute as a clock that is ahead stamps it. */
function append(
  spool: Spool,
  index: number,
  aheadSeconds: number,
  gaps: TelemetryGap[] = [],
  bootId = 'boot',
) {
  const minute = Math.floor(at(index, aheadSeconds) / 60) * 60;
  const stampedBy = { ...clockAhead(aheadSeconds, bootId), since: minute };
  spool.append([sampleMinute(minute, 100 + index)], gaps, { commit: `${minute} ${aheadSeconds}`, stampedBy });
}
const years = 10 * 365 * 86_400;

for (const ahead of [600, 7200, years, -7200, -years])
  test(`minutes of a clock ${ahead} s ahead get their own by the right clock, with the same bytes and another number`, (t) => {
    const spool = openSpool(t);
    append(spool, 3, ahead);
    append(spool, 4, ahead);
    append(spool, 5, 0);
    const first = spool.oldest()!;
    assert.equal(spool.restamp(first, clockAhead(0), nowMs), true);
    const again = spool.oldest()!;
    assert.notEqual(again.sequence, first.sequence);
    assert.deepEqual(show(again), { minutes: [3], gaps: [] }, 'a step of whole minutes leaves minutes whole');
    const [was] = contentOf(first).minutes;
    const [is] = contentOf(again).minutes;
    assert.deepEqual([is!.hosts, is!.totals], [was!.hosts, was!.totals]);
    assert.equal(spool.restamp(again, clockAhead(0), nowMs), false, 'once');
    spool.acknowledge(again, 'accepted');
    const second = spool.oldest()!;
    assert.equal(spool.restamp(second, clockAhead(0), nowMs), true);
    assert.deepEqual(show(spool.oldest()!).minutes, [4]);
    spool.acknowledge(spool.oldest()!, 'accepted');
    const right = spool.oldest()!;
    assert.equal(spool.restamp(right, clockAhead(0), nowMs), false, 'what is right stays');
  });

test('minutes of an uneven step, and those that meet others, are named by a gap', (t) => {
  const spool = openSpool(t);
  append(spool, 5, 0);
  append(spool, 4, 7225);
  append(spool, 5, 7200);
  assert.deepEqual(show(spool.oldest()!).minutes, [5]);
  spool.acknowledge(spool.oldest()!, 'accepted');
  spool.restamp(spool.oldest()!, clockAhead(0), nowMs);
  assert.deepEqual(show(spool.oldest()!), { minutes: [4], gaps: ['4-4 clock_step'] });
  spool.acknowledge(spool.oldest()!, 'accepted');
  spool.restamp(spool.oldest()!, clockAhead(0), nowMs);
  assert.equal(spool.settle(spool.oldest()!), true);
  assert.deepEqual(show(spool.oldest()!), { minutes: [5], gaps: ['5-5 clock_step'] });
});

test('a gap that reaches from the right time into a wrong clock’s ends where collection began', (t) => {
  const spool = openSpool(t);
  const to = at(7, years);
  const stampedBy = { ...clockAhead(years), since: to + 60 };
  const gap = { fromMinute: at(2), toMinute: to, capture: '', reason: 'sensor_down' as const };
  spool.append([], [gap], { commit: 'down', stampedBy });
  assert.equal(spool.restamp(spool.oldest()!, clockAhead(0), nowMs), true);
  assert.deepEqual(show(spool.oldest()!).gaps, ['2-7 sensor_down']);
});

test('of another boot only what can not be is stamped again: before this boot, and never a minute of another', (t) => {
  const spool = openSpool(t);
  append(spool, -20, 0, [], 'earlier');
  append(spool, -15, years, [], 'earlier');
  append(spool, -14, years, [], 'earlier');
  assert.equal(spool.restamp(spool.oldest()!, clockAhead(0), nowMs), false, 'a time that can be stays');
  spool.acknowledge(spool.oldest()!, 'accepted');
  const found: number[] = [];
  for (let i = 0; i < 2; i += 1) {
    assert.equal(spool.restamp(spool.oldest()!, clockAhead(0), nowMs), true);
    found.push(...show(spool.oldest()!).minutes);
    spool.acknowledge(spool.oldest()!, 'accepted');
  }
  // This boot began ten minutes before minute 0.
  assert.deepEqual(found, [-12, -11]);
});

test('what an earlier version covered of the future blocks nothing: neither minutes, nor the gap that waits, nor salvage', (t) => {
  const spool = openSpool(t);
  // As 0.1.0 wrote it: without names and clocks, years covered by a jump.
  spool.append([sampleMinute(at(1), 5)], []);
  spool.append([], [{ fromMinute: at(2), toMinute: at(0, years), capture: '', reason: 'clock_step' }]);
  spool.close();
  const again = openSpool(t, spool.directory);
  append(again, 5, 0);
  assert.deepEqual(show(again.oldest()!).minutes, [1]);
  again.acknowledge(again.oldest()!, 'accepted');
  const gap = again.oldest()!;
  assert.equal(again.restamp(gap, clockAhead(0), nowMs), true);
  // Minute 5 takes itself back at the monitor, because it comes after the gap.
  assert.deepEqual(show(again.oldest()!).gaps, ['2-9 sensor_down']);
  again.acknowledge(again.oldest()!, 'accepted');
  assert.deepEqual(show(again.oldest()!), { minutes: [5], gaps: [] });
});

test('clocks and minutes are known after a restart, and a commit that happened is not made again', (t) => {
  const spool = openSpool(t);
  append(spool, 3, 7200);
  spool.close();
  const again = openSpool(t, spool.directory);
  append(again, 3, 7200);
  assert.equal(again.status().pendingUploads, 1);
  assert.deepEqual(again.lastStampedBy(), { ...clockAhead(7200), throughMinute: at(3, 7200) });
  again.restamp(again.oldest()!, clockAhead(0), nowMs);
  assert.deepEqual(show(again.oldest()!).minutes, [3]);
  assert.deepEqual(
    again.refuse(again.oldest()!).map((one) => one.fromMinute),
    [at(3)],
  );
});
