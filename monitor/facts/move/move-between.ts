/** Moves and deletes facts by the places that a person names. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createFactClient, describeStart, type FactsPlace, placeText } from '../clickhouse/connect.ts';
import { createEngine, type Engine, hasClickhouseFacts, readStoreId } from '../clickhouse/engine-store.ts';
import { dropTables, migrate } from '../clickhouse/table-store.ts';
import {
  type EngineIdentity,
  hasPostgresFacts,
  lockEngineUse,
  noStore,
  postgresIdentity,
} from '../control/engine-use-store.ts';
import { readMove } from '../control/move-store.ts';
import { toClickhouseEnds, toPostgresEnds } from './move-ends.ts';
import { type MoveFactsDeps, moveFacts, refused, type UploadHold } from './move-facts.ts';
import { deletePostgresFacts } from './postgres-day-store.ts';

/** Where facts are: a database of ClickHouse, or null for PostgreSQL. */
export type FactsSide = FactsPlace | null;

export interface MoveBetween extends Pick<MoveFactsDeps, 'db' | 'clock' | 'say' | 'signal' | 'onStep'> {
  /** By the settings. */
  from: FactsSide;
  to: FactsSide;
  hold: UploadHold;
}

/** Runs until the switch. Throws what `moveFacts` throws. */
export async function moveBetween(move: MoveBetween): Promise<void> {
  const { db, from, to } = move;
  if (from === null && to === null) throw refused('The traffic facts are in PostgreSQL already.');
  if (from !== null && to !== null)
    throw refused(
      placeText(from) === placeText(to)
        ? `The traffic facts are in ${placeText(to)} already.`
        : 'The traffic facts are in ClickHouse. From one ClickHouse to another they move by way of PostgreSQL: ./svc monitor move-facts --to postgres first.',
    );
  if (to !== null) {
    await withEngine(to, '--to', async (engine) => {
      await moveFacts({
        ...move,
        ends: toClickhouseEnds(db, engine),
        source: postgresIdentity,
        targetPlace: placeText(to),
      });
    });
    return;
  }
  await withEngine(from!, 'SVC_FACTS_URL', async (engine) => {
    const source: EngineIdentity = {
      storeId: (await readStoreId(engine)) ?? noStore,
      place: placeText(from!),
    };
    const ends = toPostgresEnds(db, engine);
    await moveFacts({ ...move, ends, source, targetPlace: postgresIdentity.place });
  });
}

/** Deletes the facts of an engine that is not in use. Throws `facts.move_refused`; false where it has none. */
export async function deleteFacts(db: () => Queryable, of: FactsSide): Promise<boolean> {
  const inUse = (place: string) =>
    refused(
      `The traffic facts of this installation are in ${place}, so they are not deleted. Move them first: ./svc monitor move-facts --help.`,
    );
  return await db()
    .transaction()
    .execute(async (trx) => {
      const used = await lockEngineUse(trx);
      const move = await readMove(trx);
      const isTarget = (storeId: string | null) => move !== null && move.toStoreId === storeId;
      const underWay = refused(
        'A move to it is under way. Give it up first: ./svc monitor move-facts --cancel.',
      );
      if (of === null) {
        if (used === null || used.storeId === null) throw inUse(postgresIdentity.place);
        if (isTarget(null)) throw underWay;
        const had = await hasPostgresFacts(trx);
        await deletePostgresFacts(trx);
        return had;
      }
      return await withEngine(of, '--from', async (engine) => {
        const found = await readStoreId(engine);
        if (used === null || (found !== null && used.storeId === found)) throw inUse(placeText(of));
        if (found !== null && isTarget(found)) throw underWay;
        const had = await hasClickhouseFacts(engine);
        await dropTables(engine);
        return had;
      });
    });
}

/** With tables as this program has them. `setting` is what to check where the server can't be used. */
async function withEngine<T>(
  place: FactsPlace,
  setting: string,
  work: (engine: Engine) => Promise<T>,
): Promise<T> {
  const client = createFactClient(place);
  try {
    const engine = createEngine(client);
    try {
      await migrate(engine);
    } catch (error) {
      throw describeStart(error, place, setting);
    }
    return await work(engine);
  } finally {
    await client.close();
  }
}
