/** What private networks need from the rest of the program. */
import type { Reporter } from '#common/reporter/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './authorise.ts';

/** What attaching needs to know of a server. */
export interface AttachableServer {
  id: number;
  tenantId: number;
  locationId: number;
  provisioningState: string;
  hasPublicIp: boolean;
}

export interface NetworksDeps {
  db: () => Queryable;
  catalog: Catalog;
  clusters: Clusters;
  hypervisors: Hypervisors;
  /** The server with its row locked until the transaction ends; null for a destroyed one and another's. */
  lockServer: (tx: Queryable, scope: Scope, serverId: number) => Promise<AttachableServer | null>;
  reporter: Reporter;
  /** Networks that one account may have. */
  networksMax: number;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
