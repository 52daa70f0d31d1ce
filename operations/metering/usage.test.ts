import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dueOverage, overageQuanta, projectCount } from './usage.ts';

test('API-8.6: charges of any schedule come to the same total, and the mark moves only as far as was paid', () => {
  const usual = { unitRequests: 100_000, rateQuanta: 10_000 };
  const at = (overage: number) => dueOverage(overage, 0, usual);
  assert.deepEqual([0, 1, 9, 10, 1_005].map(at), [
    { quanta: 0, chargedCount: 0 },
    { quanta: 0, chargedCount: 0 },
    { quanta: 0, chargedCount: 0 },
    { quanta: 1, chargedCount: 10 },
    { quanta: 100, chargedCount: 1_000 },
  ]);
  for (const price of [usual, { unitRequests: 10, rateQuanta: 3 }, { unitRequests: 7, rateQuanta: 11 }]) {
    for (let step = 1; step < 40; step += 1) {
      let [charged, paid] = [0, 0];
      for (let overage = 0; overage < 500; overage += step) {
        const due = dueOverage(overage, charged, price);
        paid += due.quanta;
        charged = due.chargedCount;
        assert.ok(charged <= overage, `${charged} of ${overage} were charged`);
        assert.equal(paid, overageQuanta(overage, price), `after ${overage} in steps of ${step}`);
      }
    }
  }
  assert.deepEqual(dueOverage(50, 0, { unitRequests: 10, rateQuanta: 0 }), { quanta: 0, chargedCount: 0 });
});

test('a projection rests on the hours since the account was opened, and there is none before the first', () => {
  const at = (day: number, hour = 0) => new Date(Date.UTC(2026, 10, day, hour));
  const of = (since: Date, asOf: Date, count: number) =>
    projectCount({ isOpen: true, count, since, asOf, endsAt: new Date(Date.UTC(2026, 11, 1)) });
  // Opened on the 21st: ten days of a month, one of which is over.
  assert.deepEqual(of(at(21), at(22), 100), { count: 1_000, hours: 24 });
  assert.deepEqual(of(at(1), at(16), 300), { count: 600, hours: 360 });
  assert.equal(of(at(21), new Date(at(21).getTime() + 3_599_999), 100), null);
  assert.deepEqual(of(at(30, 22), at(30, 23), 7), { count: 14, hours: 1 });
});
