import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLookup, createSharing } from './lookup.ts';

/** A look-up of words, with what it was asked each time. */
function setUp() {
  const asked: string[][] = [];
  const lookup = createLookup<string, string>(async (words) => {
    asked.push(words);
    if (words.includes('lost')) throw new Error('the database is away');
    return new Map(words.filter((word) => word !== 'none').map((word) => [word, word.toUpperCase()]));
  });
  return { asked, lookup };
}

test('those that ask in one turn share a statement, and each gets its own row', async () => {
  const { asked, lookup } = setUp();
  assert.deepEqual(await Promise.all(['a', 'b', 'a', 'none'].map(lookup)), ['A', 'B', 'A', null]);
  assert.deepEqual(asked, [['a', 'b', 'none']]);
});

test('what was read is asked for anew in the next turn', async () => {
  const { asked, lookup } = setUp();
  await lookup('a');
  await lookup('a');
  assert.deepEqual(asked, [['a'], ['a']]);
});

test('a statement that fails fails those that share it, and none after them', async () => {
  const { lookup } = setUp();
  const both = await Promise.allSettled([lookup('lost'), lookup('a')]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  );
  assert.equal(await lookup('a'), 'A');
});

test('those that ask for the same in one turn share a read that begins after it, and one that fails fails them alone', async () => {
  const share = createSharing();
  const reads: string[] = [];
  const ask = (key: string) =>
    share(key, async () => {
      reads.push(key);
      if (key === 'lost') throw new Error('the database is away');
      return key.toUpperCase();
    });
  const asked = ['a', 'lost', 'a', 'b'].map(ask);
  assert.deepEqual(reads, [], 'what is committed before the turn ends is in the answer');
  const answers = await Promise.allSettled(asked);
  assert.deepEqual(
    answers.map((one) => (one.status === 'fulfilled' ? one.value : one.status)),
    ['A', 'rejected', 'A', 'B'],
  );
  await ask('a');
  assert.deepEqual(reads, ['a', 'lost', 'b', 'a']);
});
