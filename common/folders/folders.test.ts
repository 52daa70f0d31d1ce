import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolders } from './index.ts';

test('folders are made down to the last, which has the mode asked for, and making them again is nothing', (t) => {
  const base = mkdtempSync(join(tmpdir(), 'svc-folders-'));
  t.after(() => rmSync(base, { recursive: true }));
  const path = join(base, 'a', 'b', 'c');
  makeFolders(path, 0o700);
  makeFolders(path);
  assert.equal(statSync(path).mode & 0o777, 0o700);
});

test('where nothing can be made it fails instead of trying for ever', () => {
  assert.throws(() => makeFolders('/proc/nothing/at/all'), /ENOENT/);
  assert.throws(() => makeFolders('/etc/passwd/folder'), /ENOTDIR/);
  assert.throws(() => makeFolders('/etc/passwd'), /EEXIST/);
});
