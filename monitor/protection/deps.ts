import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Sites } from '#monitor/sites/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ProtectionDeps {
  db: () => Queryable;
  /** Connections that only read, for what plans ask (NET-5.3). */
  reader: () => Queryable;
  sites: Pick<Sites, 'listClusters'>;
  clock: Clock;
  reporter: Reporter;
  /** Whether sensors are asked for capture files of attacks. */
  takesEvidence: boolean;
}
