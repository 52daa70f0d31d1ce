import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { dpkg, prove } from './package-revisions.prove.ts';

const needsDpkg = existsSync('/usr/bin/dpkg') ? {} : { skip: 'dpkg is not installed' };

test('versions of packages have the order of dpkg', needsDpkg, async () => {
  const said: string[] = [];
  const result = await prove({ n: 120, seed: 5, report: (line) => said.push(line) }, [dpkg]);
  assert.deepEqual([said, result.failures, result.plantedBugsCaught], [[], 0, '1 of 1']);
});
