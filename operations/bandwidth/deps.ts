/** What bandwidth needs from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PoolRules } from './pool.ts';
import type { Source } from './store.ts';

export interface BandwidthDeps {
  db: () => Queryable;
  clusters: Clusters;
  hypervisors: Hypervisors;
  clock: Clock;
  reporter: Reporter;
  /** What speaks for a day that both know of. */
  source: Source;
  /** What counts against the pool. */
  poolCounts: 'outbound' | 'total';
  rules: PoolRules;
}
