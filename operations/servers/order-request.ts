/** What is ordered: the input of the call, what it selects in the catalog, and what the order stores of it. */
import type { Image, Plan } from '#operations/catalog/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import type { requester } from './authorise.ts';

export interface CreateServerInput {
  tenantId: number;
  /** Slug or id. */
  plan: string | number;
  image: string | number;
  /** May be left out where there is one location only. */
  location?: string | number | undefined;
  name?: string | undefined;
  hostname?: string | undefined;
  sshKeys?: readonly string[] | undefined;
  userData?: string | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  /** One existing private network of the same account and location, joined from the first boot on. */
  networkId?: number | undefined;
  /** Its address there; absent: the lowest free one. */
  networkIp?: string | undefined;
  /** False: a server that is reached through its private network only. */
  publicIp?: boolean | undefined;
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
  requester: ReturnType<typeof requester>;
}
