import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createExpiryLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { deleteExpired } from './store.ts';

/** Deletes incidents that were last observed too long ago. */
export function createIncidentRetention(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createExpiryLoop({ name: 'operations-incident-retention', ...deps, deleteExpired });
}
