import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FactStore } from '#monitor/facts/index.ts';
import type { MonitorWorld } from '#monitor/testing/index.ts';
import { testMinute } from '#monitor/testing/index.ts';
import { createExplorer, type Dimension, parseQueryUrl, type Query } from './index.ts';
import { createTraffic, peer, range } from './testing/traffic-world.ts';

const records: Record<string, string> = { [peer]: 'DE', '203.0.113.5': 'FR' };

/** An explorer that knows countries, and how often it was described peers and read facts. */
function createCounted(world: MonitorWorld) {
  const counts = { readings: 0, described: 0 };
  const { facts, devices } = world;
  const counted: FactStore = {
    ...facts,
    exploreTogether(reading, views) {
      counts.readings += 1;
      return facts.exploreTogether(reading, views);
    },
  };
  const explorer = createExplorer({
    ...{ db: () => world.database.db, facts: counted, devices },
    async describeNetworks(addresses) {
      counts.described += 1;
      return addresses.map((address) => ({
        ...{ asNumber: null, asName: null, country: records[address] ?? null },
      }));
    },
  });
  return { explorer, counts };
}

/** Queries of a page: the same filters and range by several dimensions, and flows without steps. */
function queriesOf(siteId: number, values: Record<string, string>, bys: readonly Dimension[][]): Query[] {
  const { query, faults } = parseQueryUrl(siteId, { ...range, step: '60', ...values });
  assert.deepEqual(faults, []);
  return [
    ...bys.map((by): Query => ({ ...query, by })),
    { ...query, by: ['server', 'application'], step: null, compare: null },
  ];
}

test('the queries of a page have together the answers that each has alone', async () => {
  await using world = await createTraffic();
  const { explorer } = createCounted(world);
  const late = { from: new Date((testMinute + 120) * 1000).toISOString(), compare: 'previous' };
  const bys: Dimension[][] = [
    [],
    ['application'],
    ['server'],
    ['country'],
    ['peer'],
    ['customer'],
    ['sensor'],
  ];
  for (const values of [
    {},
    late,
    { measure: 'packets', order: 'in' },
    { q: 'server:"web 1" -app:example.org' },
    { ...late, q: 'country:DE' },
    { q: 'customer:41 sensor:none device:02:00:00:00:00:01' },
    { q: '-server:db -country:FR', top: '1' },
  ]) {
    const queries = queriesOf(world.siteId, values, bys);
    const together = await explorer.exploreTogether(queries);
    for (const [i, query] of queries.entries())
      assert.deepEqual(together[i], await explorer.explore(query), JSON.stringify(query));
  }
  assert.deepEqual(await explorer.exploreTogether([]), []);
});

test('queries of the same facts and range are one reading, and peers are named once for all', async () => {
  await using world = await createTraffic();
  const { explorer, counts } = createCounted(world);
  const read = async (values: Record<string, string>, bys: readonly Dimension[][]) => {
    Object.assign(counts, { readings: 0, described: 0 });
    await explorer.exploreTogether(queriesOf(world.siteId, values, bys));
    return counts;
  };
  const named: Dimension[][] = [['application'], ['port'], ['direction']];
  assert.deepEqual(await read({ q: 'customer:41' }, named), { readings: 1, described: 0 });
  assert.deepEqual(await read({ q: 'customer:41' }, [...named, ['server']]), { readings: 2, described: 0 });
  // The flows compare with nothing, so they are read by themselves.
  const compared = await read({ q: 'customer:41', compare: 'previous' }, named);
  assert.deepEqual(compared, { readings: 3, described: 0 });
  assert.deepEqual(await read({ q: 'country:DE' }, [['country'], ['peer']]), { readings: 1, described: 1 });
});
