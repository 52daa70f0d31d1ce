// Slow: asks ClickHouse and plain memory the same.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkGaps } from '../testing/gaps.ts';
import { checkQuietSteps } from '../testing/quiet-steps.ts';
import { checkDelivered, checkFirstCapture, checkSegments } from '../testing/who-counts.ts';
import { compareClickhouse, withClickhouse } from './testing/under-test.ts';

const seeds = (process.env.SVC_TEST_SEED ?? '3').split(',').map(Number);

for (const seed of seeds)
  test(`NET-2.2.5, NET-2.2.9, NET-2.2.10: ClickHouse answers like the rules in plain memory, of many uploads; seed ${seed}`, async () => {
    assert.deepEqual(await compareClickhouse({ uploads: 12, seed }), []);
  });

test('NET-2.4.2: ClickHouse trims gaps of unobserved minutes like the rules in plain memory', () =>
  withClickhouse(checkGaps));

test('NET-2.2.10: ClickHouse explores no steps in which no address had traffic, though captures listened', () =>
  withClickhouse(checkQuietSteps));

for (const [what, check] of [
  ['of captures that saw the same bytes the first by sensor and name', checkFirstCapture],
  ['of an address in several segments the strongest capture of each', checkSegments],
  [
    'what was delivered, and apart from it what filters dropped, before or behind the capture',
    checkDelivered,
  ],
] as const)
  test(`NET-2.2.5, NET-2.2.10: ClickHouse counts ${what}`, () => withClickhouse(check));
