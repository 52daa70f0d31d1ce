/** What firewalls need from the rest of the program. */
import type { Reporter } from '#common/reporter/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface FirewallsDeps {
  db: () => Queryable;
  hypervisors: Hypervisors;
  reporter: Reporter;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
