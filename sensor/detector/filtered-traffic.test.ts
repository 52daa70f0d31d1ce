import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FrameFeed, LiveCounters } from '#sensor/attack-counters/index.ts';
import {
  createFlood,
  dividedThresholds,
  packetsAtThreshold,
  startSecond,
  victim,
} from '#sensor/testing/attack-traffic.ts';
import { createThresholdBook, LiveDetector } from './index.ts';

const thresholds = dividedThresholds(100);
const target = victim(4);

/** Plays seconds of a reflected flood to a detector; those that are filtered reach the filter alone. */
function play(
  seconds: number,
  isFiltered: (second: number) => boolean,
  lasts = seconds,
  direction: 'inbound' | 'outbound' = 'inbound',
) {
  const book = createThresholdBook(thresholds);
  const scope = { prefixes: ['192.0.2.0/24'], addresses: [] };
  const order = { number: 1, epochId: 'e', scope, book, groups: [], drills: [], isProtected: () => true };
  const detector = new LiveDetector(order, 'eth0');
  const limits = book.sets.map(({ hostLimits }) => hostLimits);
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  const feed = new FrameFeed(counters);
  const shape = { class: 'amplification', version: 4, direction, ratio: 3 } as const;
  const step = createFlood(shape, 5);
  const perSecond = Math.ceil(packetsAtThreshold(shape, thresholds) * shape.ratio);
  for (let i = 0; i <= seconds; i += 1) {
    const at = startSecond + i;
    counters.turn(at, perSecond);
    for (const part of counters.takeSeconds()) detector.take(part, 1, at * 1000);
    if (i >= lasts) continue;
    const frames = Array.from({ length: perSecond }, () => step()[0]!);
    const bytes = frames.reduce((sum, { length }) => sum + length - 14, 0);
    if (isFiltered(i)) {
      const amount = { packets: perSecond, bytes };
      const counts = { matched: amount, dropped: amount, passed: { packets: 1, bytes: 60 } };
      const row = { target, class: 'amplification', counts, isDropping: true, problem: '' } as const;
      detector.noteFiltered(at, [{ ...row, direction }]);
    } else for (const one of frames) feed.observe(one, 0, one.length, one.length, 1, 1, at);
  }
  return { detector, perSecond };
}

test('NET-3.2: an attack that the filter drops goes on, with its class and ports, and what was dropped is told apart', () => {
  const { detector, perSecond } = play(90, (second) => second >= 10);
  const [incident] = detector.openIncidents();
  assert.equal(detector.openIncidents().length, 1);
  assert.deepEqual([incident!.class, incident!.vectors[0]!.ports], ['amplification', [123]]);
  assert.equal(incident!.current!.pps, perSecond);
  const { filter } = incident!;
  assert.equal(filter!.dropped.packets, 80 * perSecond);
  assert.deepEqual([filter!.passed.packets, filter!.isDropping, filter!.current.pps], [80, true, perSecond]);
  const [minute] = [detector.takeMinute(Math.floor(startSecond / 60) * 60 + 60)];
  assert.equal(
    minute.rows.find(({ address }) => address === target)?.attackPackets ?? 0,
    0,
    'not of the minute',
  );
});

test('NET-3.2: an attack by a server that the filter drops goes on as well, and its server is not told to be attacked', () => {
  const { detector, perSecond } = play(60, (second) => second >= 10, 60, 'outbound');
  const open = detector.openIncidents();
  assert.deepEqual(
    open.map((one) => [one.direction, one.current!.pps, one.filter!.dropped.packets]),
    [['outbound', perSecond, 50 * perSecond]],
  );
});

test('NET-3.2: an attack of which nothing more is dropped recovers', () => {
  const { detector } = play(110, (second) => second >= 10, 40);
  assert.equal(detector.openIncidents().length, 0);
  assert.equal(detector.takeEnded().recovered[0]!.filter!.isDropping, true);
});
