import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gapsOf, offTimes } from './flags.ts';

const minuteMs = 60_000;

test('each gap has the reason that is known of it', () => {
  const at = (index: number) => index * minuteMs;
  const observed = (index: number) => ({ at: new Date(at(index)), minutes: 1, reason: null });
  const gaps = gapsOf({
    range: { fromMs: at(0), toMs: at(20), stepSeconds: 60 },
    steps: [
      observed(3),
      { at: new Date(at(4)), minutes: 0, reason: 'capture_failed' },
      { at: new Date(at(5)), minutes: 1, reason: 'packets_lost' },
      observed(6),
      observed(9),
    ],
    createdMs: at(1) + 20_000,
    off: [{ fromMs: at(7), toMs: at(9) }],
    nowMs: at(16) + 1,
  });
  assert.deepEqual(
    gaps.map(({ fromMs, toMs, text }) => [fromMs / minuteMs, toMs / minuteMs, text]),
    [
      [0, 2, 'before the server was created'],
      [2, 3, 'no observation'],
      [4, 5, 'capture failed'],
      [5, 6, 'data lost'],
      [7, 9, 'server switched off'],
      [10, 13, 'no observation'],
      [13, 16, 'not delivered yet'],
      [16, 17, 'in progress'],
      [17, 20, 'not yet'],
    ],
  );
  const hours = gapsOf({
    ...{ range: { fromMs: 0, toMs: at(120), stepSeconds: 3600 }, steps: [], createdMs: at(70), off: [] },
    ...{ before: 'before the first', nowMs: at(1_000) },
  });
  assert.deepEqual(
    hours.map(({ text }) => text),
    ['before the first', 'no observation'],
  );
  const action = (command: 'stop' | 'start', finishedAt: string) =>
    ({ command, finishedAt, status: 'success', outcome: null }) as Parameters<typeof offTimes>[0][number];
  const [stop, start] = ['2026-01-01T10:00:00Z', '2026-01-01T11:00:00Z'];
  assert.deepEqual(
    offTimes([action('start', start!), action('stop', stop!)], { isOff: false, sinceMs: 0, nowMs: 0 }),
    [{ fromMs: Date.parse(stop!), toMs: Date.parse(start!) }],
  );
});
