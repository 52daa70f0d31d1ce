import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { advanceCursor, completeUntil, createCursor, firstWholeMinute, planVisit } from './plan-visit.ts';

const day = 24 * 3600;
const start = 1_790_000_000 - (1_790_000_000 % 60);

test('NET-2.3: whole minutes start at or after the assignment', () => {
  assert.equal(firstWholeMinute(start * 1000), start);
  assert.equal(firstWholeMinute(start * 1000 + 1), start + 60);
  assert.equal(firstWholeMinute(start * 1000 + 59_999), start + 60);
});

test('NET-4.3: a visit has the five most recent minutes and at most 55 older ones, never one twice', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -3000, max: 3000 }),
      fc.integer({ min: -3000, max: 3000 }),
      fc.integer({ min: -3000, max: 3000 }),
      (delivered, swept, assigned) => {
        const cursor = { deliveredUntil: start + delivered * 60, sweptUntil: start + swept * 60 };
        const assignedFrom = start + assigned * 60;
        const visit = planVisit(cursor, assignedFrom, start);
        if (!visit) return assert.ok(assignedFrom >= start);
        const { recentFrom, recentTo, historyFrom, historyTo } = visit;
        assert.equal(recentTo, start);
        assert.equal(recentTo - recentFrom, Math.min(300, start - assignedFrom));
        assert.ok(historyTo - historyFrom <= 55 * 60);
        assert.ok(historyFrom >= recentFrom || historyTo <= recentFrom);
        assert.ok(recentFrom >= assignedFrom && Math.min(historyFrom, recentFrom) >= assignedFrom);
        assert.ok(historyFrom >= start - day);
      },
    ),
  );
});

test('NET-4.3: after an outage every missed minute is visited before the sweep goes on', () => {
  let cursor = { deliveredUntil: start - 7 * 3600, sweptUntil: start - 20 * 3600 };
  const seen = new Set<number>();
  let visits = 0;
  while (cursor.deliveredUntil < start) {
    const visit = planVisit(cursor, 0, start)!;
    for (let minute = visit.historyFrom; minute < visit.historyTo; minute += 60) seen.add(minute);
    for (let minute = visit.recentFrom; minute < visit.recentTo; minute += 60) seen.add(minute);
    cursor = advanceCursor(cursor, visit, visit.historyTo);
    visits += 1;
  }
  assert.equal(visits, Math.ceil((7 * 60 - 5) / 55));
  for (let minute = start - 7 * 3600; minute < start; minute += 60) assert.ok(seen.has(minute));
  assert.equal(cursor.sweptUntil, start - 20 * 3600, 'the sweep stands where it stood');
});

test('NET-4.3: the sweep goes over the last 24 hours again and again', () => {
  let now = start;
  let cursor = { ...createCursor(0, now), deliveredUntil: now };
  const visitsOf = new Map<number, number>();
  for (let i = 0; i < 60; i += 1) {
    now += 60;
    const visit = planVisit(cursor, 0, now)!;
    assert.equal(visit.isCatchingUp, false);
    for (let minute = visit.historyFrom; minute < visit.historyTo; minute += 60) {
      visitsOf.set(minute, (visitsOf.get(minute) ?? 0) + 1);
    }
    cursor = advanceCursor(cursor, visit, visit.historyTo);
  }
  for (let minute = start - day + 3600; minute < start - 300; minute += 60) {
    assert.ok((visitsOf.get(minute) ?? 0) >= 2, `minute ${(minute - start) / 60}`);
  }
});

test('a minute is complete when every listening capture closed it, or its lateness has passed', () => {
  const now = start + 10;
  const at = (...newest: (number | null)[]) =>
    completeUntil(
      newest.map((newestMinute, captureId) => ({ captureId, newestMinute })),
      now * 1000,
    );
  assert.equal(at(start - 60, start - 60), start, 'both closed the last minute');
  assert.equal(at(start - 60, start - 120), start - 60, 'one still owes it');
  assert.equal(at(start - 60, null), start, 'a capture without any minute delays no delivery');
  assert.equal(at(start - 60, start - 3600), start, 'nor does a silent one');
  assert.equal(at(start - 60, start - 240), start - 60, 'after the lateness limit no capture is waited for');
  assert.equal(at(), start - 60, 'without sensors the lateness alone decides');
  assert.equal(at(start + 600), start, 'the running minute is never complete');
});
