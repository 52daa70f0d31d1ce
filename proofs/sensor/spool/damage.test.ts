import assert from 'node:assert/strict';
import { test } from 'node:test';
import { damageSpools } from './damage.prove.ts';

const n = Number(process.env.SVC_TEST_SPOOL_FLIPS ?? 16);

test(`${n} spools with a flipped bit and ${n} that were cut: at most one upload each, or what lay behind, is a gap; the rest arrives`, () => {
  for (const kind of ['flip', 'cut'] as const) {
    const { offences, tried } = damageSpools({ n, seed: 5, kind, plant: null, report: () => {} });
    assert.deepEqual(offences, []);
    assert.equal(tried, n);
  }
});
