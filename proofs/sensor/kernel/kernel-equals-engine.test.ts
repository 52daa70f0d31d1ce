// Slow: compiles the kernel's programs.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { compileKernel, kernelSources, objectOf } from '#tools/compile-kernel.ts';
import { findDifference } from './kernel-equals-engine.prove.ts';

const isPossible = process.getuid?.() === 0 && existsSync('/usr/bin/clang');
const skip = isPossible ? false : 'needs root and clang';

test('compiling the kernel’s programs again makes the objects that are kept', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-kernel-'));
  try {
    for (const source of kernelSources) {
      const object = join(folder, 'again.o');
      compileKernel(source, object);
      assert.ok(readFileSync(object).equals(readFileSync(objectOf(source))), source);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('NET-2.2.6: the kernel counts frames as the engine does', { skip }, () =>
  assert.equal(findDifference(5000, 1), null),
);
