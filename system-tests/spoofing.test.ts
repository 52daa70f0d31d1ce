// Slow: starts a lab with guests and a sensor on its interfaces.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needsRoot } from './testing/needs-root.ts';
import { proveSpoofing } from './testing/spoofing-proof.ts';

test(
  'NET-2.4.2: while a guest sends from another’s addresses, those have the bytes of their own guest’s port',
  needsRoot,
  async () => {
    const { faults, spoofedBytes } = await proveSpoofing({ n: 4, seed: 1 });
    assert.deepEqual(faults, []);
    assert.ok(spoofedBytes > 10_000, `${spoofedBytes}`);
  },
);
