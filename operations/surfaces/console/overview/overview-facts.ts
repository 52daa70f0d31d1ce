import type { AdminToken } from '#operations/admin-projects/index.ts';
import type { AttentionFacts } from '#operations/attention/index.ts';
import type { Image, Location, Offer, Plan } from '#operations/catalog/index.ts';
import type { DayRoom } from '#operations/clusters/index.ts';
import type { FleetUsage } from '#operations/metering/index.ts';

/** What the page is made of; also what says which first steps are done. */
export interface OverviewFacts extends AttentionFacts {
  locations: readonly Location[];
  plans: readonly Offer<Plan>[];
  images: readonly Offer<Image>[];
  days: readonly DayRoom[];
  customerCount: number;
  customers: { suspended: number; inDebt: number };
  usage: FleetUsage;
  /** Of the admin API, of all projects. */
  tokens: readonly AdminToken[];
}
