import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { findDeadPaths } from './index.ts';

test('a document that names a missing file is refused by its line, in code style and as a link', () => {
  const root = mkdtempSync(join(tmpdir(), 'svc-doc-paths-'));
  try {
    mkdirSync(join(root, 'monitor/feeds/minutes'), { recursive: true });
    mkdirSync(join(root, 'docs/decisions'), { recursive: true });
    writeFileSync(join(root, 'monitor/feeds/index.ts'), '');
    writeFileSync(join(root, 'docs/settings.md'), '');
    const lines = [
      'There are `monitor/feeds/index.ts`, `monitor/feeds/`, `monitor/<feature>/index.ts` and [settings](settings.md#monitor).',
      'Gone are `monitor/delivery/` and `monitor/<feature>/store.ts: the first line`.',
      'So is [a page](operating.md), but not [a site](https://example.com/operating.md) or `other/file.ts`.',
    ];
    writeFileSync(join(root, 'docs/page.md'), lines.join('\n'));
    writeFileSync(join(root, 'docs/decisions/0001-old.md'), 'It was `monitor/delivery/`.');
    const found = findDeadPaths(root, [
      'docs/page.md',
      'docs/decisions/0001-old.md',
      'monitor/feeds/index.ts',
    ]);
    assert.deepEqual(found, [
      { at: 'docs/page.md:2', path: 'monitor/delivery/' },
      { at: 'docs/page.md:2', path: 'monitor/<feature>/store.ts' },
      { at: 'docs/page.md:3', path: 'docs/operating.md' },
    ]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
