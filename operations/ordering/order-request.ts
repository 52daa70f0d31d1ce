/** What is ordered: the input of the call, what it selects in the catalog, and what the order stores of it. */
import type { Image, Plan } from '#operations/catalog/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import type { RequestedServer, Requester } from '#operations/servers/index.ts';

export interface CreateServerInput extends RequestedServer {
  /** Slug or id; may be left out where there is one location only. */
  location?: string | number | undefined;
}

/** What was chosen out of the catalogue. */
export interface Choice {
  plan: Plan;
  image: Image;
  locationId: number;
  clusters: Cluster[];
}

/** What an order remembers of its call, so that any process can carry it out. */
export interface OrderRequest {
  input: CreateServerInput;
  requester: Requester;
}
