import assert from 'node:assert/strict';
import { test } from 'node:test';
import { courseStep } from './build-answer.ts';
import { parseQueryUrl } from './index.ts';

const stepOf = (range: string, step?: string) =>
  courseStep(parseQueryUrl(1, { range, ...(step !== undefined && { step }) }).query);

test('the course beside a chart in short steps is in steps that are kept, and beside one in long steps in its own', () => {
  assert.equal(stepOf('24h', '60'), 3600);
  assert.equal(stepOf('24h', '600'), 3600);
  assert.equal(stepOf('24h', '7200'), 7200);
  assert.equal(stepOf('1h', '60'), 60, 'a short range is read by the minute anyway');
  assert.equal(stepOf('6h', '600'), 600);
  assert.equal(stepOf('24h'), 'auto');
  assert.equal(stepOf('24h', 'none'), null);
});
