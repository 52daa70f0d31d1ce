import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { createRunningReads, leftAfterMs, patienceMs } from './explore.routes.ts';

const settle = () => new Promise((done) => setImmediate(done));

function createSlow() {
  const clock = createTestClock(0);
  const reads = createRunningReads<string>(clock);
  const begun: { signal: AbortSignal; end: (value: string) => void; fail: (error: Error) => void }[] = [];
  const read = (signal: AbortSignal) =>
    new Promise<string>((end, fail) => {
      begun.push({ signal, end, fail });
    });
  return { clock, reads, begun, read };
}

test('a read that takes long is told of, goes on, and is given to the next request', async () => {
  const { clock, reads, begun, read } = createSlow();
  const first = reads.join('1', 'url', read);
  await clock.advance(patienceMs);
  assert.deepEqual(await first, { state: 'running', seconds: 2 });
  const second = reads.join('1', 'url', read);
  begun[0]!.end('answer');
  assert.deepEqual(await second, { state: 'done', value: 'answer' });
  assert.equal(begun.length, 1, 'it was read once');
  const third = reads.join('1', 'url', read);
  begun[1]!.end('a later answer');
  assert.deepEqual(await third, { state: 'done', value: 'a later answer' }, 'an answer is given once');
});

test('one person never gets the read of another', async () => {
  const { clock, reads, begun, read } = createSlow();
  const [mine, other] = [reads.join('1', 'url', read), reads.join('2', 'url', read)];
  await clock.advance(patienceMs);
  await Promise.all([mine, other]);
  assert.equal(begun.length, 2);
});

test('a read is left when it is stopped, when it is not asked for again, and when its person begins too many', async () => {
  const { clock, reads, begun, read } = createSlow();
  const ask = async (key: string) => {
    const asked = reads.join('1', key, read);
    await clock.advance(patienceMs);
    await asked;
  };
  await ask('stopped');
  reads.leave('1', 'stopped');
  assert.equal(begun[0]!.signal.aborted, true);
  await ask('left');
  await clock.advance(leftAfterMs - 1);
  assert.equal(begun[1]!.signal.aborted, false);
  await clock.advance(1);
  await settle();
  assert.equal(begun[1]!.signal.aborted, true);
  for (const key of ['a', 'b', 'c', 'd']) await ask(key);
  assert.deepEqual(
    begun.slice(2).map(({ signal }) => signal.aborted),
    [true, false, false, false],
  );
});

test('an error is told to who waits, and the next one reads anew', async () => {
  const { reads, begun, read } = createSlow();
  const failing = reads.join('1', 'url', read);
  begun[0]!.fail(new Error('no'));
  await assert.rejects(failing, /no/);
  const again = reads.join('1', 'url', read);
  begun[1]!.end('yes');
  assert.deepEqual(await again, { state: 'done', value: 'yes' });
});
