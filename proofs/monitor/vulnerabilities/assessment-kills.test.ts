// Slow: kills a process that assesses at random statements, and each that goes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prove } from './assessment-kills.prove.ts';

test('NET-2.6.4: assessments that are killed are finished by the next process: nothing lost, doubled or older', async () => {
  const said: string[] = [];
  const { failures } = await prove({ n: 2, seed: 5, report: (line) => said.push(line) });
  assert.equal(failures, 0, said.join('\n'));
});
