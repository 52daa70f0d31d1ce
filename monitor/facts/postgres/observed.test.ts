import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameApplication } from '#monitor/applications/index.ts';
import { captureMinute, host } from '#monitor/testing/index.ts';
import type { FactStore } from '../contract/fact-store.ts';
import { createStandingWorld, postgresUnderTest, standingSecond } from '../testing/engines.ts';
import { createMemoryFacts } from '../testing/memory/memory-facts.ts';
import { randomToken, seededBelow } from '../testing/random-uploads.ts';

const moved = '192.0.2.10';
const other = '192.0.2.11';

test('NET-2.2.10: of an address that moved, minutes are observed in which any capture listened that saw it', async () => {
  await using world = await createStandingWorld();
  const store = await postgresUnderTest(world);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond });
  const from = standingSecond - 1800;
  const random = seededBelow(4);
  const listen = async (sensor: number, capture: string, after: number, addresses: readonly string[]) => {
    const minute = captureMinute({
      ...{ minute: from + 60 * after, capture },
      hosts: addresses.map((one) => host(one, 500, 50)),
    });
    const upload = {
      origin: store.origins[sensor]!,
      token: randomToken(random),
      minutes: [minute],
      gaps: [],
    };
    await model.append([upload]);
    await store.append([upload]);
  };
  // Until it moves one sensor sees it, then the other; a third capture never does, and the sixth minute is its own.
  for (const after of [0, 1, 2]) await listen(0, 'eth0', after, [moved, other]);
  for (const after of [3, 4]) await listen(1, 'eth0', after, [moved]);
  for (const after of [0, 1, 2, 3, 4, 5]) await listen(1, 'eth1', after, [other]);
  const observed = async (facts: FactStore, ...values: string[]) =>
    (
      await facts.explore({
        ...{ siteId: world.siteId, fromMinute: from, toMinute: from + 600, stepSeconds: 60 },
        ...{ source: 'addresses', filters: [{ dimension: 'address', is: true, values }], by: [] },
        ...{ owners: [], networks: [], measure: 'bytes', order: 'size', rows: { limit: 5 } },
      })
    ).observed.map(({ timeMs }) => (timeMs / 1000 - from) / 60);
  for (const facts of [model, store.facts]) {
    assert.deepEqual(await observed(facts, moved), [0, 1, 2, 3, 4]);
    assert.deepEqual(await observed(facts, other), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(await observed(facts, moved, other), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(await observed(facts, '192.0.2.77'), [], 'what nothing saw is not observed');
  }
});
