/** The engine of facts that the settings choose. */
import type { Part } from '#common/lifecycle/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createClickhouseFacts } from './clickhouse/clickhouse-facts.ts';
import { createFactClient, describeStart, type FactsPlace, placeText } from './clickhouse/connect.ts';
import type { FactEngineState } from './contract/engine-state.ts';
import type { FactStore } from './contract/fact-store.ts';
import { postgresIdentity } from './control/engine-use-store.ts';
import { type FactMoveState, readMoveState } from './move/describe-move.ts';
import { createFactStore, type FactStoreDeps } from './postgres/postgres-facts.ts';
import { useClickhouse, usePostgres } from './use-engine.ts';

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
