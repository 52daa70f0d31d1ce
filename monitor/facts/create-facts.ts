/** The engine of facts that the settings choose. */

import { randomUUID } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createClickhouseFacts } from './clickhouse/clickhouse-facts.ts';
import { createFactClient, describeStart, type FactsPlace, placeText } from './clickhouse/connect.ts';
import { type Engine, hasClickhouseFacts, readStoreId, writeStoreId } from './clickhouse/engine-store.ts';
import type { FactEngineState, FactStore } from './contract/fact-store.ts';
import {
  describeOther,
  type EngineIdentity,
  hasPostgresFacts,
  lockEngineUse,
  postgresIdentity,
  writeEngineUse,
} from './control/engine-use-store.ts';
import { type FactMoveState, readMoveState } from './move/describe-move.ts';
import { createFactStore, type FactStoreDeps } from './postgres/postgres-facts.ts';

export interface FactEngine {
  facts: FactStore;
  /**
   * Looks after the engine's server; starts after the database. `start` says what is wrong with it, and that another engine holds
   * the facts (`facts.moved`).
   */
  part: Part;
  /** How long uploads should wait for others at most: an engine may take few large inserts rather than many small ones. */
  gatherMs: number;
  /** How the engine's server stands; null where it has none of its own. Never throws. */
  state(): Promise<FactEngineState | null>;
  /** What is moving, and whether another engine holds the facts by now. */
  move(): Promise<FactMoveState>;
}

const gatherMsOfClickhouse = 2000;

/** PostgreSQL where there is no other place. */
export function createFacts(
  deps: FactStoreDeps & {
    /** Connections that only read; the same as the others when absent. */
    reader?: () => Queryable;
  },
  place: FactsPlace | null,
): FactEngine {
  const { db, reader = db } = deps;
  if (place === null) {
    return {
      facts: createFactStore(deps),
      gatherMs: 0,
      part: { name: 'facts', start: () => usePostgres(db()), stop: async () => {} },
      state: async () => null,
      move: () => readMoveState(reader(), postgresIdentity),
    };
  }
  const client = createFactClient(place);
  const facts = createClickhouseFacts({ ...deps, client, place: placeText(place) });
  return {
    facts,
    gatherMs: gatherMsOfClickhouse,
    state: () => facts.state(),
    move: () => readMoveState(reader(), facts.identity),
    part: {
      name: 'facts',
      async start() {
        try {
          await facts.migrate();
          await useClickhouse(db(), facts.engine, facts.identity);
        } catch (error) {
          throw describeStart(error, place);
        }
      },
      stop: () => client.close(),
    },
  };
}

// Whether this process may use the engine that its settings name.

const moved = (message: string) => new CodedError('facts.moved', message);

/** Notes PostgreSQL as the engine at the first start; throws `facts.moved` where another one holds the facts. */
async function usePostgres(db: Queryable): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const used = await lockEngineUse(trx);
    if (used === null) await writeEngineUse(trx, postgresIdentity);
    else if (used.storeId !== null) throw moved(describeOther(used.place, postgresIdentity.place));
  });
}

/**
 * The same of ClickHouse, whose tables get a number at the first start: PostgreSQL notes it first, so that a start which ends in between
 * is made good by the next.
 */
export async function useClickhouse(db: Queryable, engine: Engine, identity: EngineIdentity): Promise<void> {
  const found = await readStoreId(engine);
  const storeId = await db.transaction().execute(async (trx) => {
    const used = await lockEngineUse(trx);
    if (used === null) {
      const made = { ...identity, storeId: randomUUID() };
      await requireFree(trx, engine, identity, found);
      await writeEngineUse(trx, made);
      return made.storeId;
    }
    const isNew = found === null && used.storeId !== null && used.place === identity.place;
    if (used.storeId === null || (used.storeId !== found && !isNew))
      throw moved(describeOther(used.place, identity.place));
    // The same tables under another name.
    if (used.place !== identity.place) await writeEngineUse(trx, { ...used, place: identity.place });
    return used.storeId;
  });
  if (found === null) await writeStoreId(engine, storeId);
  identity.storeId = storeId;
}

/** At the first start: the tables are no other installation's, and PostgreSQL holds nothing that they lack. */
async function requireFree(trx: Queryable, engine: Engine, { place }: EngineIdentity, found: string | null) {
  if (found !== null)
    throw moved(
      `${place} holds the traffic facts of another installation. Name an empty database in SVC_FACTS_URL.`,
    );
  // An installation of an earlier version may have facts in both: then the setting is as it was.
  if ((await hasPostgresFacts(trx)) && !(await hasClickhouseFacts(engine)))
    throw moved(describeOther(postgresIdentity.place, place));
}
