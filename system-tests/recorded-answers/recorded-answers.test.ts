// Slow: asks both programs for some thousand answers, in a world with a day of traffic.
/**
 * Answers of all surfaces in one world, compared with the record in `answers/`. What a change means to change is listed in
 * `record.ts` with its reason. To record anew, and to empty that list:
 *
 *     SVC_RECORD_ANSWERS=1 sh tools/with-node tools/test.ts system-tests/recorded-answers/recorded-answers.test.ts
 */
// Own process: stops the clock, and makes chance repeatable.
import assert from 'node:assert/strict';
import { createHash, randomInt } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { askEverything } from './ask-everything.ts';
import { compareAnswers, readRecord, writeRecord } from './record.ts';
import { createRecordedWorld } from './world.ts';

const differencesFile = '.cache/recorded-answers.diff';

test('each surface answers as it is recorded, in any order of the questions', async (t) => {
  const seed = randomInt(1_000_000);
  const folder = await mkdtemp(join(tmpdir(), 'svc-recorded-'));
  try {
    await using world = await createRecordedWorld(folder);
    if (process.env.SVC_RECORD_ANSWERS) return writeRecord(await askEverything(world));
    const recorded = readRecord();
    const rank = (name: string) => createHash('sha256').update(`${seed} ${name}`).digest('hex');
    const order = [...recorded.keys()].toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
    const answers = await askEverything(world, order);
    t.diagnostic(`${answers.size} answers, asked in the order of seed ${seed}`);
    const differences = compareAnswers(recorded, answers);
    if (differences !== '') await writeFile(differencesFile, `${differences}\n`);
    assert.ok(differences === '', `all differences are in ${differencesFile}\n${differences}`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a difference is told by its lines, once for all answers that have it', () => {
  const recorded = new Map([
    ['portal /a', 'Servers\nweb\nrunning'],
    ['portal /b', 'Networks\nweb\nrunning'],
    ['API /c', 'same'],
  ]);
  const answers = new Map([...recorded].map(([name, text]) => [name, text.replace('running', 'up')]));
  answers.set('portal /d', 'more');
  const meant = { answers: /^portal \/d/, lines: /^\+/, reason: 'a new page' };
  assert.equal(compareAnswers(recorded, answers, [meant]), 'portal /a\nportal /b\n    - running\n    + up');
  assert.match(compareAnswers(recorded, recorded, [meant]), /no answer differs any more: a new page/);
});
