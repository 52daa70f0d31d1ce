/** What ordering needs from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Orders } from './orders.ts';

export interface OrderingDeps {
  db: () => Queryable;
  catalog: Catalog;
  networks: Networks;
  hypervisors: Hypervisors;
  orders: Orders;
  clock: Clock;
  reporter: Reporter;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
