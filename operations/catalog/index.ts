/**
 * What can be ordered, and where: plans with their prices, images, locations, and the clusters that stand in them.
 *
 * Customers name things by slug or by id. What is no longer offered stays readable, because servers still have it.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export type { Cluster, Image, Location, Plan } from './store.ts';
export {
  ensureCluster,
  ensureImage,
  ensureLocation,
  ensurePlan,
  listAllLocations,
  listClusters,
} from './store.ts';

export interface Catalog {
  listPlans(): Promise<store.Plan[]>;
  listImages(): Promise<store.Image[]>;
  /** Where something can be ordered. */
  listLocations(): Promise<store.Location[]>;
  /** Those without a cluster as well. */
  listAllLocations(): Promise<store.Location[]>;
  /** Clusters of a location, oldest first. */
  listClusters(locationId?: number): Promise<store.Cluster[]>;
}

export function createCatalog(deps: { db: () => Queryable }): Catalog {
  return {
    listPlans: () => store.listPlans(deps.db()),
    listImages: () => store.listImages(deps.db()),
    listLocations: () => store.listLocations(deps.db()),
    listAllLocations: () => store.listAllLocations(deps.db()),
    listClusters: (locationId) => store.listClusters(deps.db(), locationId),
  };
}
