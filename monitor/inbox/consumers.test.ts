import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import type { SkippedUpload, UploadConsumer } from '#monitor/intake/index.ts';
import { captureMinute, createMonitorWorld, createSpool, testMinute } from '#monitor/testing/index.ts';

const later = () => Math.ceil(Date.now() / 60_000) * 60 + 7200;

/** A kind that takes the sequences of uploads with a gap, and notes every call. */
function noteGaps(change: Partial<UploadConsumer<number>> = {}) {
  const calls: unknown[][] = [];
  const consumer: UploadConsumer<number> = {
    kind: 'noted',
    select: ({ upload }) => (upload.gaps.length > 0 ? upload.sequence : null),
    prepare: async (records) => void calls.push(['prepare', ...records]),
    apply: async (_trx, records) => void calls.push(['apply', ...records]),
    ...change,
  };
  return { calls, consumer };
}

const gap = { fromMinute: testMinute, toMinute: testMinute, capture: '', reason: 'sensor_down' as const };

test('a consumer gets the records of a batch once, in the order of arrival, and nothing of uploads that hold none', async () => {
  const { calls, consumer } = noteGaps();
  await using world = await createMonitorWorld({ plusConsumer: consumer });
  const spool = createSpool();
  for (const gaps of [[], [gap], [], [gap]]) await world.send(spool.upload([captureMinute()], gaps));
  await world.inbox.drain();
  await world.apply(spool.upload([captureMinute()]));
  assert.deepEqual(calls, [
    ['prepare', 2, 4],
    ['apply', 2, 4],
  ]);
});

test('NET-7.1: an upload that speaks of the future by any kind of record stays with its sensor, and one with old observations is refused', async () => {
  let times: ReturnType<NonNullable<UploadConsumer['times']>> = { mentioned: [later()] };
  const { consumer } = noteGaps({ times: () => times });
  await using world = await createMonitorWorld({ plusConsumer: consumer });
  const upload: TelemetryUpload = createSpool().upload([]);
  await assert.rejects(world.send(upload), { code: 'telemetry.clock_ahead' });
  times = { observed: [later()] };
  await assert.rejects(world.send(upload), { code: 'telemetry.clock_ahead' });
  times = { observed: [testMinute - 93 * 86_400] };
  await assert.rejects(world.send(upload), { code: 'telemetry.refused' });
  times = { mentioned: [testMinute - 93 * 86_400] };
  assert.equal(await world.send(upload), 'accepted');
});

test('NET-6.2: every consumer is told of an upload that is skipped', async () => {
  const skipped: SkippedUpload[] = [];
  const { consumer } = noteGaps({
    apply: () => Promise.reject(new Error('planned failure')),
    skip: async (_trx, one) => void skipped.push(one),
  });
  await using world = await createMonitorWorld({ plusConsumer: consumer });
  const spool = createSpool();
  await world.apply(spool.upload([captureMinute()], [gap]), spool.upload([captureMinute()]));
  assert.deepEqual(
    skipped.map(({ spoolId, sequence, firstMinute, lastMinute }) => [
      spoolId,
      sequence,
      firstMinute,
      lastMinute,
    ]),
    [[spool.id, 1, testMinute, testMinute]],
  );
});

test('work that one consumer fails to do after a round is logged with its kind and holds up no other', async () => {
  const warned = Promise.withResolvers<unknown>();
  const followed = Promise.withResolvers<void>();
  await using world = await createMonitorWorld();
  const failing = noteGaps({ followUp: () => Promise.reject(new Error('planned failure')) }).consumer;
  const working = noteGaps({ followUp: async () => followed.resolve() }).consumer;
  const { worker } = world.anotherInbox({
    consumers: [failing, working],
    reporter: { ...silentReporter, warn: (phrase, fields) => warned.resolve([phrase, fields]) },
  });
  await worker.start();
  await followed.promise;
  assert.deepEqual(await warned.promise, [
    'work after uploads failed',
    { kind: 'noted', error: 'planned failure' },
  ]);
  await worker.stop();
});
