// Slow: sends 1,500 requests over four processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createInstallation } from './installation.ts';
import { type Asked, judgeBudget } from './judge-budgets.ts';
import { runBudgets } from './shared-budgets.prove.ts';

const requests = 1_500;

test(`API-8.a: ${requests} requests at random over 4 processes: no key is allowed one too many within any window, none is refused too early`, async () => {
  await using installation = await createInstallation();
  const result = await runBudgets(installation, { n: requests, seed: 5, report: () => {} }, null);
  assert.deepEqual(result.offences, []);
  assert.ok(result.allowed > 100 && result.refused > 100);
});

/** Requests of one key, a millisecond each, with a budget of two in ten seconds. */
const judge = (...asked: [sentMs: number, remaining: number | null, resetSeconds: number][]) =>
  judgeBudget(
    'key',
    asked.map(
      ([sentMs, remaining, resetSeconds]): Asked => ({
        sentMs,
        receivedMs: sentMs + 1,
        isAllowed: remaining !== null,
        remaining: remaining ?? 0,
        resetSeconds,
      }),
    ),
    { capacity: 2, windowMs: 10_000 },
  );

test('the judge of budgets names each offence, and none where a limit is as it should be', () => {
  assert.deepEqual(judge([0, 1, 10], [4_000, 0, 6], [5_000, null, 5], [10_100, 0, 4]), []);
  assert.match(judge([0, 1, 10], [1, 0, 10], [2, 0, 10])[0]!, /3 requests were allowed within a window of 2/);
  assert.match(judge([0, 1, 10], [1_000, null, 9])[0]!, /refused when at most 1 were within the window/);
  assert.match(judge([0, 0, 10])[0]!, /0 requests are named as left instead of 1 to 1/);
  assert.match(judge([0, 1, 11])[0]!, /a wait of 11 s/);
  assert.match(
    judge([0, 1, 10], [4_000, 0, 6], [5_000, null, 9], [10_100, 0, 4])[0]!,
    /allowed before the 9 s that an earlier one was told to wait/,
  );
});
