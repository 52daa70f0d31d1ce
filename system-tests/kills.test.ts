// Slow: kills every program and database of a lab, and waits for the minutes around the kills.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeError } from '#common/errors/index.ts';
import { proveKills } from './testing/kill-proof.ts';
import { needsRoot } from './testing/needs-root.ts';

test('killed programs neither lose, double nor invent a byte of any minute', needsRoot, async (t) => {
  const seed = 7;
  const lines: string[] = [];
  const report = (line: string) => lines.push(line);
  // Every program and every database server is killed once.
  const result = await proveKills({ n: 5, seed, report, scansPorts: false }).catch((error: unknown) => {
    const why = `seed ${seed}: ${describeError(error)}`;
    throw new Error([why, ...lines, why].join('\n'), { cause: error });
  });
  const killed = new Set(lines.flatMap((line) => / kill \d of 5: (.*)/.exec(line)?.[1] ?? []));
  assert.equal(killed.size, 5, [...killed].join(', '));
  t.diagnostic(`seed ${seed}: ${result.equal} minutes equal, ${result.gaps} named as gaps`);
  assert.deepEqual(result.faults, [], `seed ${seed}`);
  assert.ok(result.equal > 0);
  assert.equal(result.planted.caught, result.planted.of);
});
