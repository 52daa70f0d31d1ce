/** What bandwidth needs from the rest of the program. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PoolRules } from './pool.ts';
import type { Source } from './store.ts';

export interface BandwidthDeps {
  db: () => Queryable;
  /** What speaks for a day that both know of. */
  source: Source;
  /** What counts against the pool. */
  poolCounts: 'outbound' | 'total';
  rules: PoolRules;
}
