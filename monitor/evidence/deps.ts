/** What capture files need from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Incidents } from '#monitor/incidents/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { ObjectStore } from './object-store.ts';

export interface EvidenceDeps {
  db: () => Queryable;
  reader: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  objects: ObjectStore;
  /** How long files are kept. */
  days: number;
  incidents: Pick<Incidents, 'findObservation'>;
}
