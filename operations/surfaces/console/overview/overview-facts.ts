import type { PoolUse } from '#operations/addresses/index.ts';
import type { AdminToken } from '#operations/admin-projects/index.ts';
import type { Image, Location, Offer, Plan } from '#operations/catalog/index.ts';
import type { Cluster, DayRoom, Node } from '#operations/clusters/index.ts';
import type { FleetUsage } from '#operations/metering/index.ts';
import type { ServerStatus } from '#operations/servers/index.ts';
import type { QueueHealth } from '#operations/webhooks/index.ts';

/** What the page is made of; also what says which first steps are done. */
export interface OverviewFacts {
  servers: ReadonlyMap<ServerStatus, number>;
  clusters: readonly Cluster[];
  locations: readonly Location[];
  nodes: readonly Node[];
  pools: readonly PoolUse[];
  plans: readonly Offer<Plan>[];
  images: readonly Offer<Image>[];
  days: readonly DayRoom[];
  customerCount: number;
  customers: { suspended: number; inDebt: number };
  waitingCharges: number;
  oldestChargeMs: number;
  webhooks: QueueHealth;
  usage: FleetUsage;
  /** Of the admin API, of all projects. */
  tokens: readonly AdminToken[];
}
