/** What servers need from the rest of the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ServersDeps {
  db: () => Queryable;
  catalog: Catalog;
  addresses: Addresses;
  clusters: Clusters;
  networks: Networks;
  hypervisors: Hypervisors;
  /** The root password that was made with the order. */
  findRootPassword: (orderId: number) => Promise<string>;
  clock: Clock;
  reporter: Reporter;
  /** How long a new guest may be silent before its provisioning has failed; default 180 seconds. */
  bootSecondsMax?: number;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
