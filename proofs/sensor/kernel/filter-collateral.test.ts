/** Floods beside ordinary traffic through the filter's programs, without an interface. Needs root. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { floodClasses } from '#sensor/testing/attack-traffic.ts';
import { runFloods } from './filter-collateral.prove.ts';

test(
  'beside a flood of each class no packet of an established pair is dropped, of forty kinds of ordinary traffic; the flood is',
  {
    skip: process.getuid?.() === 0 ? false : 'needs root',
  },
  () => assert.deepEqual(runFloods(2 * floodClasses.length, 3), { cut: 0, failures: [] }),
);
