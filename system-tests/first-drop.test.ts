// Slow: starts a sensor and a monitor, and floods an interface.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureFirstDrop } from './testing/first-drop.ts';
import { needsRoot } from './testing/needs-root.ts';

test(
  'a sensor and its monitor drop a flood by a rule that drops at once, without a person',
  needsRoot,
  async (t) => {
    const afterMs = await measureFirstDrop('udp_flood');
    t.diagnostic(`${Math.round(afterMs)} ms after the first packet`);
    assert.ok(afterMs > 0);
  },
);
