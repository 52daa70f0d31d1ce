import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { kernelSources, objectOf, sourceHash } from './compile-kernel.ts';

test('each object of the kernel was compiled from the source beside it', () => {
  for (const source of kernelSources) {
    const isCurrent = readFileSync(objectOf(source)).includes(sourceHash(source));
    assert.ok(isCurrent, `${source} was changed: sh tools/with-node tools/compile-kernel.ts`);
  }
});
