/** What sensors need from the rest of the program. */
import type { Reporter } from '#common/reporter/index.ts';
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { PlanSection } from './plan-section.ts';

export interface SensorsDeps {
  db: () => Queryable;
  /** Connections that only read, for authentication and plans. */
  reader: () => Queryable;
  /** What the features of the monitor want of sensors. */
  sections: readonly PlanSection[];
  /** A sensor speaks for other addresses than before; in the transaction that says so. */
  onPlaced?: (trx: Queryable, changed: readonly ChangedAddress[]) => Promise<void>;
  /** How long a rotated credential is taken. */
  credentialDays?: number;
  reporter?: Reporter;
}
