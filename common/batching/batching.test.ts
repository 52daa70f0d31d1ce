import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatching } from './index.ts';

test('calls of one moment form one batch, later calls the next; each caller gets its own result', async () => {
  const batches: number[][] = [];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const double = createBatching<number, number>({
    itemsMax: 3,
    async run(items) {
      batches.push([...items]);
      await gates[batches.length - 1]!.promise;
      return items.map((item) => (item === 13 ? new Error('unlucky') : item * 2));
    },
  });
  const first = [double(1), double(2)];
  await new Promise(setImmediate);
  const later = [double(3), double(13), double(5), double(6)].map((one) =>
    one.catch((error: Error) => error.message),
  );
  gates[0]!.resolve();
  assert.deepEqual(await Promise.all(first), [2, 4]);
  gates[1]!.resolve();
  gates[2]!.resolve();
  assert.deepEqual(await Promise.all(later), [6, 'unlucky', 10, 12]);
  assert.deepEqual(batches, [[1, 2], [3, 13, 5], [6]]);
});

test('a heavy item goes alone, and a batch that fails fails its own callers alone', async () => {
  const batches: number[][] = [];
  const work = createBatching<number, number>({
    itemsMax: 10,
    weigh: (item) => item,
    weightMax: 10,
    batchesMax: 2,
    async run(items) {
      batches.push([...items]);
      if (items.includes(99)) throw new Error('too heavy');
      return [...items];
    },
  });
  const outcomes = await Promise.all(
    [4, 6, 1, 99, 2].map((item) => work(item).catch((e: Error) => e.message)),
  );
  assert.deepEqual(outcomes, [4, 6, 1, 'too heavy', 2]);
  assert.deepEqual(batches, [[4, 6], [1], [99], [2]]);
});
