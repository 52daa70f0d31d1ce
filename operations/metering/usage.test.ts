import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dueOverage, overageQuanta } from './usage.ts';

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
