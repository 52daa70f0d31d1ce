import assert from 'node:assert/strict';
import { test } from 'node:test';
import { treeOf } from '../testing/tree-of.ts';
import { findDeadPaths } from './index.ts';

test('a document that names a missing file is refused by its line, in code style and as a link', () => {
  const page = [
    'There are `monitor/feeds/index.ts`, `monitor/feeds/`, `monitor/<feature>/index.ts` and [settings](settings.md#monitor).',
    'Gone are `monitor/delivery/` and `monitor/<feature>/store.ts: the first line`.',
    'So is [a page](operating.md), but not [a site](https://example.com/operating.md) or `other/file.ts`.',
    'There are `monitor/**/index.ts`, `monitor/*/`, [a folder](decisions) and `docs/settings.md.`, but not `docs/*/index.ts`.',
  ];
  const tree = treeOf({
    'docs/page.md': page.join('\n'),
    'docs/decisions/0001-old.md': 'It was `monitor/delivery/`.',
    'docs/settings.md': '',
    'monitor/feeds/index.ts': '',
  });
  assert.deepEqual(findDeadPaths(tree), [
    { at: 'docs/page.md:2', path: 'monitor/delivery/' },
    { at: 'docs/page.md:2', path: 'monitor/<feature>/store.ts' },
    { at: 'docs/page.md:3', path: 'docs/operating.md' },
    { at: 'docs/page.md:4', path: 'docs/*/index.ts' },
  ]);
});
