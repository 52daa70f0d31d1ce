import type { Sides } from '#service-kit/explorer/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ExplorationAsk } from './exploration.ts';
import type { ExplorerScope, TrafficServer } from './explorer-store.ts';
import type { Names } from './traffic-names.ts';

/** What the parts of an exploration stand on. */
export interface Opened {
  db: Queryable;
  ask: ExplorationAsk;
  scope: ExplorerScope;
  servers: readonly TrafficServer[];
  names: Names;
  directions: Sides;
  nowMs: number;
}
