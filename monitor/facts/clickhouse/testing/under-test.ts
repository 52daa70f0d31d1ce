/** ClickHouse as an engine under test, beside plain memory. */
import { nameApplication } from '#monitor/applications/index.ts';
import type { MonitorWorld } from '#monitor/testing/index.ts';
import { type ConformanceOptions, checkConformance, type StoreUnderTest } from '../../testing/conformance.ts';
import { createMoves, createStandingWorld, engineUnderTest, middleOfHour } from '../../testing/engines.ts';
import { createMemoryFacts } from '../../testing/memory/memory-facts.ts';
import { createClickhouseFacts } from '../clickhouse-facts.ts';
import type { FactClient } from '../engine-store.ts';
import { createChdbEngine } from './chdb-engine.ts';

async function clickhouseUnderTest(world: MonitorWorld, client: FactClient): Promise<StoreUnderTest> {
  // A view that takes long is right all the same.
  const patient = { nameApplication, exploreMs: 600_000 };
  const create = () => createClickhouseFacts({ client, db: () => world.database.db, ...patient });
  const facts = create();
  await facts.migrate();
  return await engineUnderTest(world, facts, create);
}

/** Gives a check an empty ClickHouse, and the second at which its world stands. */
export async function withClickhouse<T>(
  check: (store: StoreUnderTest, nowSecond: number, world: MonitorWorld) => Promise<T>,
): Promise<T> {
  const nowSecond = middleOfHour();
  await using world = await createStandingWorld(nowSecond);
  await using engine = await createChdbEngine();
  return await check(await clickhouseUnderTest(world, engine.client), nowSecond, world);
}

/** Feeds ClickHouse and plain memory the same while servers move; returns where their answers differ. */
export const compareClickhouse = (counts: Pick<ConformanceOptions, 'uploads' | 'seed'>): Promise<string[]> =>
  withClickhouse(async (store, nowSecond, world) => {
    const { move, book } = await createMoves(world, nowSecond, store.facts);
    const model = createMemoryFacts({ nameApplication, nowSecond: () => nowSecond, book });
    // It rolls nothing up, and late facts are among the first.
    const stages = ['from facts alone'] as const;
    return await checkConformance({ ...store, move }, { ...counts, model, questions: 1, nowSecond, stages });
  });
