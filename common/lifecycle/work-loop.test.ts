import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { createWorkLoop } from './work-loop.ts';

test('a loop of several workers reports the same fault once, another one again, and that it works again', async () => {
  const lines: string[] = [];
  const clock = createTestClock(0);
  let fault: string | null = 'the database is away';
  let attempts = 0;
  const loop = createWorkLoop({
    ...{ name: 'mails', failure: 'mails can not be sent', pollMs: 500, workers: 3, clock },
    reporter: createReporter({ program: 'x', write: (line) => lines.push(line.replace(/^\S+ +/, '')) }),
    async work() {
      attempts += 1;
      if (fault !== null) throw new Error(fault);
      return false;
    },
  });
  /** Lets every worker take its next turn. */
  const turn = async () => {
    const wanted = attempts + 3;
    await clock.advance(500);
    while (attempts < wanted || clock.waiting() < 3) await new Promise((done) => setImmediate(done));
  };
  await loop.start();
  while (clock.waiting() < 3) await new Promise((done) => setImmediate(done));
  for (let i = 0; i < 5; i += 1) await turn();
  fault = 'the database starts';
  for (let i = 0; i < 5; i += 1) await turn();
  fault = null;
  await turn();
  await loop.stop();
  assert.ok(attempts > 30);
  assert.deepEqual(
    lines.map((line) => line.replaceAll(/ {2,}/g, ' ')),
    [
      'error x mails can not be sent error="the database is away"',
      'error x mails can not be sent error="the database starts"',
      'info x it works again part=mails',
    ],
  );
});
