/** What private networks need from the rest of the program. */
import type { Reporter } from '#common/reporter/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface NetworksDeps {
  db: () => Queryable;
  catalog: Catalog;
  clusters: Clusters;
  hypervisors: Hypervisors;
  reporter: Reporter;
  /** Networks that one account may have. */
  networksMax: number;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
