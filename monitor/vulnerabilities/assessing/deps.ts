import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Scans } from '#monitor/scans/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NewFindings, SevereCount } from './noted-store.ts';

/** A server after its check: how many severe findings are active, and those that are new. */
export interface FoundOfServer extends SevereCount {
  /** The evidence of severe findings has expired, or says too little now: they are missing, and nothing has mended them. */
  hasLostSight: boolean;
  /** By service, the most severe first. */
  found: readonly NewFindings[];
}

export interface AssessorDeps {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  scans: Pick<Scans, 'listEvidence'>;
  /** Severities that operators are alerted of. */
  severe: readonly ('high' | 'critical')[];
  /** Called in the transaction that stores a check of servers. */
  onChecked: (trx: Queryable, checked: readonly FoundOfServer[]) => Promise<void>;
}
