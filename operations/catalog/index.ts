/**
 * What can be ordered, and where: plans with their prices, images and locations.
 *
 * Customers name things by slug or by id. What is no longer offered stays readable, because servers still have it.
 */
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import { listOfferedLocations } from '#operations/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as change from './change-catalog.ts';
import * as store from './store.ts';

export type { Image, Location, Offer, Plan } from './store.ts';
export {
  ensureImage,
  ensureLocation,
  ensurePlan,
  listAllLocations,
} from './store.ts';

export interface Catalog {
  listPlans(): Promise<store.Plan[]>;
  listImages(): Promise<store.Image[]>;
  /** Where something can be ordered. */
  listLocations(): Promise<store.Location[]>;
  /** Those without a cluster as well. */
  listAllLocations(): Promise<store.Location[]>;
  /** Withdrawn ones as well. Staff only. */
  listAllPlans(actor: Actor): Promise<store.Offer<store.Plan>[]>;
  listAllImages(actor: Actor): Promise<store.Offer<store.Image>[]>;

  /** Operators only, as all below. Throws `catalog.invalid` (details.field), `catalog.slug_taken`. */
  addLocation(actor: Actor, location: Omit<store.Location, 'id'>): Promise<number>;
  addPlan(actor: Actor, plan: Omit<store.Plan, 'id'>): Promise<number>;
  addImage(actor: Actor, image: Omit<store.Image, 'id'>): Promise<number>;
  /** Throws `catalog.invalid`, `catalog.not_found`. */
  changeLocation(actor: Actor, id: number, location: Pick<store.Location, 'name' | 'country'>): Promise<void>;
  /** Servers keep the price they were ordered at, and the sizes of a plan never change. */
  changePlan(
    actor: Actor,
    id: number,
    plan: store.Offer<Pick<store.Plan, 'name' | 'hourlyQuanta' | 'monthlyCapQuanta'>>,
  ): Promise<void>;
  changeImage(actor: Actor, id: number, image: store.Offer<Pick<store.Image, 'name'>>): Promise<void>;
}

export function createCatalog(deps: { db: () => Queryable }): Catalog {
  return {
    listPlans: () => store.listPlans(deps.db()),
    listImages: () => store.listImages(deps.db()),
    listLocations: () => listOfferedLocations(deps.db()),
    listAllLocations: () => store.listAllLocations(deps.db()),
    async listAllPlans(actor) {
      requireStaff(actor);
      return store.listAllPlans(deps.db());
    },
    async listAllImages(actor) {
      requireStaff(actor);
      return store.listAllImages(deps.db());
    },
    addLocation: (actor, location) => change.addLocation(deps.db(), actor, location),
    addPlan: (actor, plan) => change.addPlan(deps.db(), actor, plan),
    addImage: (actor, image) => change.addImage(deps.db(), actor, image),
    changeLocation: (actor, id, location) => change.changeLocation(deps.db(), actor, id, location),
    changePlan: (actor, id, plan) => change.changePlan(deps.db(), actor, id, plan),
    changeImage: (actor, id, image) => change.changeImage(deps.db(), actor, id, image),
  };
}
