/** What billing maintenance needs from the rest of the program. */
import type { Metering } from '#operations/metering/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface MaintenanceDeps {
  db: () => Queryable;
  metering: Metering;
}
