/**
 * What can be ordered, and where: plans with their prices, images and locations.
 *
 * Customers name things by slug or by id. What is no longer offered stays readable, because servers still have it.
 */
import type { ImageKind } from '#contracts/capabilities.ts';
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import {
  type Availability,
  listAvailability,
  listOfferedLocations,
  type OfferedLocation,
} from '#operations/views/location-store.ts';
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

export type Catalog = ReturnType<typeof createCatalog>;

/** Everything that can be ordered, withdrawn plans and images as well, and where there is room. */
interface Offers {
  plans: store.Offer<store.Plan>[];
  images: store.Offer<store.Image>[];
  locations: OfferedLocation[];
  /** Each plan in each location where something can be ordered, by slug of the location. */
  availability: Availability[];
}

export function createCatalog(deps: { db: () => Queryable }) {
  const readOffers = rememberByVersion(
    () => store.readVersion(deps.db()),
    async (): Promise<Offers> => {
      const db = deps.db();
      const [plans, images, locations, availability] = await Promise.all([
        store.listAllPlans(db),
        store.listAllImages(db),
        listOfferedLocations(db),
        listAvailability(db),
      ]);
      return { plans, images, locations, availability };
    },
  );
  return {
    /**
     * As it is at this moment, or at least as new as the version that the caller has just read; free room is counted only when
     * something of it has changed since the last call.
     */
    readOffers,
    /** Cheapest first. */
    listPlans: async () => (await store.listAllPlans(deps.db())).filter(isOffered),
    listImages: async (kinds: readonly ImageKind[] = ['system']) =>
      (await store.listAllImages(deps.db())).filter((one) => isOffered(one) && kinds.includes(one.kind)),
    /** Where something can be ordered. */
    listLocations: () => listOfferedLocations(deps.db()),
    /** Those without a cluster as well. */
    listAllLocations: () => store.listAllLocations(deps.db()),
    /** Withdrawn ones as well. Staff only. */
    async listAllPlans(actor: Actor): Promise<store.Offer<store.Plan>[]> {
      requireStaff(actor);
      return store.listAllPlans(deps.db());
    },
    async listAllImages(actor: Actor): Promise<store.Offer<store.Image>[]> {
      requireStaff(actor);
      return store.listAllImages(deps.db());
    },
    /** Operators only, as all below. Throws `catalog.invalid` (details.field), `catalog.slug_taken`. */
    addLocation: (actor: Actor, location: Omit<store.Location, 'id'>) =>
      change.addLocation(deps.db(), actor, location),
    addPlan: (actor: Actor, plan: Omit<store.Plan, 'id'>) => change.addPlan(deps.db(), actor, plan),
    addImage: (actor: Actor, image: Omit<store.Image, 'id'>) => change.addImage(deps.db(), actor, image),
    /** Throws `catalog.invalid`, `catalog.not_found`. */
    changeLocation: (actor: Actor, id: number, location: Pick<store.Location, 'name' | 'country'>) =>
      change.changeLocation(deps.db(), actor, id, location),
    /** Servers keep the price they were ordered at, and the sizes of a plan never change. */
    changePlan: (
      actor: Actor,
      id: number,
      plan: store.Offer<Pick<store.Plan, 'name' | 'portMbit' | 'hourlyQuanta' | 'monthlyCapQuanta'>>,
    ) => change.changePlan(deps.db(), actor, id, plan),
    changeImage: (actor: Actor, id: number, image: store.Offer<Pick<store.Image, 'name'>>) =>
      change.changeImage(deps.db(), actor, id, image),
  };
}

const isOffered = (one: store.Offer<unknown>) => one.isOffered;

/** Reads anew only under another version. The version is read first, so what is remembered is never older than it. */
function rememberByVersion<T>(readVersion: () => Promise<number>, read: () => Promise<T>) {
  let last: { version: number; content: T } | null = null;
  return async (known?: number): Promise<T> => {
    const version = known ?? (await readVersion());
    if (last?.version === version) return last.content;
    const content = await read();
    last = { version, content };
    return content;
  };
}
