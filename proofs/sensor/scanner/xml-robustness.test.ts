import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCorpus } from '#sensor/testing/corpus.ts';
import { prove } from './xml-robustness.prove.ts';

test('NET-2.7.5: broken outputs of nmap end no scan and call nothing wrong open', {
  skip: !hasCorpus(),
}, async () => {
  const said: string[] = [];
  const result = await prove({ n: 400, seed: 5, report: (line) => said.push(line) });
  assert.deepEqual([result.failures, result.plantedBugsCaught, said], [0, '3 of 3', []]);
});
