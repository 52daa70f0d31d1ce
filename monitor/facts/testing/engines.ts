/** Engines under test on the database of a monitor, and servers that move. */
import { nameApplication } from '#monitor/applications/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { Placement } from '#monitor/placements/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { FactUpload } from '../contract/facts.ts';
import { createFactStore, type FactStore, openScope } from '../index.ts';
import { checkConformance, type StoreUnderTest } from './conformance.ts';
import { createMemoryFacts } from './memory/memory-facts.ts';
import { type Random, sampleAddresses } from './random-uploads.ts';

const nodes = ['node-1', 'node-2', 'node-3'];

/** When worlds of facts stand still, seconds since 1970: days and months meet, and no hour ends while a test runs. */
export const standingSecond = Date.UTC(2026, 10, 1, 0, 20) / 1000;

/** The middle of the present hour, for worlds beside a ClickHouse, which forgets facts by a clock of its own. */
export const middleOfHour = () => Math.floor(Date.now() / 3_600_000) * 3600 + 1200;

/** A monitor whose database's clock stands at this second. */
export const createStandingWorld = (nowSecond = standingSecond): Promise<MonitorWorld> =>
  createMonitorWorld({ standsAtMs: nowSecond * 1000 });

/** Servers with some of the addresses, which move between the nodes of the sensors and one without a sensor. */
export async function createMoves(
  world: MonitorWorld,
  nowSecond: number,
  facts: Pick<FactStore, 'rejudge'> = world.facts,
) {
  const placed = sampleAddresses.slice(0, 4);
  let book = new Map<string, (Placement & { isOpen: boolean })[]>();
  const read = async () => {
    const rows = await world.rows<Placement & { isOpen: boolean; key: string }>(
      `select s.id || ' ' || a.address as key, extract(epoch from p.began_at)::float8 as "beganAt",
        extract(epoch from p.ended_at)::float8 as "endedAt", p.speaks, p.is_open as "isOpen"
      from sensors s cross join unnest($1::text[]) a(address) cross join lateral address_placements(s.id, a.address::inet) p`,
      [placed],
    );
    book = Map.groupBy(rows, (row) => row.key);
  };
  const insert = (address: string, node: string, beganAt: number) =>
    world.rows(
      `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
      values (7, $1, $2, '02:00:00:00:00:01', 'br0', $3, $5, to_timestamp($4::float8))`,
      [placed.indexOf(address), node, address, beganAt, !address.startsWith('10.')],
    );
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  // Older than what is judged again, and certain up to an hour ago.
  for (const [i, address] of placed.entries()) await insert(address, nodes[i % 3]!, Number.NEGATIVE_INFINITY);
  const listedAt = nowSecond - 600;
  await world.rows('update inventory_state set listed_at = to_timestamp($1::float8)', [listedAt]);
  await read();
  const move = async (random: Random) => {
    const address = placed[random(placed.length)]!;
    const since = nowSecond - random(20 * 3600);
    await world.rows(
      `update vm_placements set ended_at = greatest(began_at, to_timestamp($2::float8)) where address = $1 and ended_at is null`,
      [address, since + random(600)],
    );
    await insert(address, nodes[random(3)]!, since);
    await world.database.db
      .transaction()
      .execute((trx) => facts.rejudge([{ address, since }], openScope(trx)));
    await read();
  };
  const placementsOf = (sensorId: number, address: string) => book.get(`${sensorId} ${address}`) ?? [];
  return { move, book: { placementsOf, certainUntil: () => listedAt } };
}

/** Feeds PostgreSQL and plain memory the same while servers move; returns where their answers differ. */
export async function comparePostgres(counts: { uploads: number; questions: number }): Promise<string[]> {
  await using world = await createStandingWorld();
  // Before the places of servers are read, which are of each sensor.
  const store = await postgresUnderTest(world);
  const { move, book } = await createMoves(world, standingSecond);
  const model = createMemoryFacts({ nameApplication, nowSecond: () => standingSecond, book });
  const seed = Number(process.env.SVC_TEST_SEED ?? 3);
  return await checkConformance({ ...store, move }, { ...counts, model, seed, nowSecond: standingSecond });
}

/** PostgreSQL with two sensors at one site. */
export async function postgresUnderTest(world: MonitorWorld): Promise<StoreUnderTest> {
  const create = () => createFactStore({ db: () => world.database.db, nameApplication });
  const rollUp: FactStore['rollUp'] = (hours, mayGoOn) => create().rollUp(hours, mayGoOn);
  return await engineUnderTest(world, { ...world.facts, rollUp }, create);
}

/** An engine with two sensors at one site. Each append is by a process that knows nothing of those before it: `create` makes one. */
export async function engineUnderTest(
  world: MonitorWorld,
  facts: FactStore,
  create: () => FactStore,
): Promise<StoreUnderTest> {
  const { siteId } = world;
  const second = await world.enrol('node-2');
  return {
    facts,
    origins: [world.sensor.id, second.id].map((sensorId) => ({ siteId, sensorId })),
    async append(uploads) {
      const own = create();
      await own.prepare(minutesOf(uploads));
      await world.database.db.transaction().execute((trx) => own.append(uploads, openScope(trx)));
    },
  };
}

export const minutesOf = (uploads: readonly FactUpload[]) =>
  uploads.flatMap(({ minutes }) => minutes.map(({ minute }) => minute));
