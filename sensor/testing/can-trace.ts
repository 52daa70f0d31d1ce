/** Tells whether tests can run processes under strace. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { TestContext } from 'node:test';

/**
 * False when processes can not be traced; then the test is skipped with a message. On the build machine everything must
 * run.
 */
export function canTrace(t: TestContext): boolean {
  const why =
    process.getuid?.() !== 0
      ? 'needs root to trace a process'
      : existsSync('/usr/bin/strace')
        ? null
        : 'needs strace';
  if (why === null) return true;
  assert.ok(!process.env.CI, `this test ${why}`);
  t.diagnostic(`left out: ${why}`);
  return false;
}
