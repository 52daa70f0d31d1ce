import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, createTestClock } from '#common/clock/index.ts';
import { captureMinute, createMonitorWorld, createSpool, host } from '#monitor/testing/index.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';

/** A clock whose waits end when the test says so. */
function createSteps() {
  let end = () => {};
  let waits = Promise.withResolvers<void>();
  const clock: Clock = {
    ...createTestClock(Date.now()),
    wait(_ms, signal) {
      const { promise, resolve } = Promise.withResolvers<void>();
      end = resolve;
      signal?.addEventListener('abort', () => resolve());
      waits.resolve();
      return promise;
    },
  };
  const turn = async () => {
    waits = Promise.withResolvers<void>();
    end();
    await waits.promise;
  };
  return {
    clock,
    /** Twice, because an upload that arrives wakes the worker at any time. */
    async turn() {
      await turn();
      await turn();
    },
  };
}

test('uploads wait for others where few large batches are wanted, and not for longer than that; a full batch and a repeat do not', async () => {
  const { clock, turn } = createSteps();
  const batches: number[] = [];
  let failing = '';
  await using world = await createMonitorWorld({
    clock,
    gatherMs: 600_000,
    retrySeconds: 60,
    consumers: [
      {
        kind: 'test',
        select: ({ upload }) => upload.sequence,
        async apply(_trx, records) {
          if (failing) throw new Error(failing);
          batches.push(records.length);
        },
      },
    ],
  });
  const spool = createSpool();
  const send = async (count: number) => {
    for (let i = 0; i < count; i += 1)
      assert.equal(
        await world.send(spool.upload([captureMinute({ hosts: [host('192.0.2.10', 5, 6)] })])),
        'accepted',
      );
  };
  await send(3);
  await world.inbox.worker.start();
  await turn();
  assert.deepEqual(batches, []);
  await moveDatabaseClock(world.database, '9 minutes');
  await turn();
  assert.deepEqual(batches, []);
  await moveDatabaseClock(world.database, '10 minutes');
  await turn();
  assert.deepEqual(batches, [3]);
  await send(66);
  await turn();
  assert.deepEqual(batches, [3, 64], 'as many as a batch holds go at once, and the rest wait');
  failing = 'planned';
  await moveDatabaseClock(world.database, '20 minutes');
  await turn();
  failing = '';
  await moveDatabaseClock(world.database, '22 minutes');
  await turn();
  assert.deepEqual(batches, [3, 64, 1, 1], 'what failed comes again by itself');
  await world.inbox.worker.stop();
});
