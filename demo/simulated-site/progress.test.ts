import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTeller } from './progress.ts';

test('each percent of the history is one line, however long it takes', () => {
  const lines: string[] = [];
  const tell = createTeller((text) => lines.push(text));
  for (const percent of [98, 99, 99, 99, 100]) tell({ percent, secondsLeft: percent < 100 ? 5 : 0 });
  assert.deepEqual(lines, ['98 %, about 5 s left', '99 %, about 5 s left', 'loaded']);
});
