// Slow: kills a whole sensor under traffic, over a whole minute.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { interrupt, plants } from './kernel-kills.prove.ts';

test('NET-2.4.2: a sensor that is killed while the kernel counts loses no frame, no minute, no name of an address and no packet that was dropped', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const { offences, caught } = await interrupt({
    ...{ n: 2, signal: 'SIGKILL', everyMs: 7000, random: seededRandom(1) },
    report: (line) => t.diagnostic(line),
  });
  assert.deepEqual(offences, []);
  assert.equal(caught, plants.length);
});
