import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as pressure from './flow-pressure.prove.ts';

test('NET-8.6: TLS names and bytes are in rows beside 5,000 and 20,000 exchanges over UDP a second', async (t) => {
  const report = (line: string) => t.diagnostic(line);
  const result = await pressure.prove({ n: 2, seed: 1, exchangesMax: 45_000, report });
  assert.equal(result.failures, 0);
  assert.equal(
    result.plantedBugsCaught,
    `${pressure.plantedFaults.length} of ${pressure.plantedFaults.length}`,
  );
});
