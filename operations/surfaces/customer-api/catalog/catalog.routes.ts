import type { FastifyRequest } from 'fastify';
import type { Capability } from '#contracts/capabilities.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { formatQuanta } from '#operations/billing/index.ts';
import type { Catalog, Image, Offer, Plan } from '#operations/catalog/index.ts';
import type { Features } from '#operations/features.ts';
import type { Availability, OfferedLocation } from '#operations/views/location-store.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { pageOf, queryReader } from '../request-parts.ts';

const readImagesQuery = queryReader(schemas.ListImagesQuery);

/** What can be ordered, and what it costs. */
export function catalogHandlers(deps: Features) {
  const { catalog, clusters } = deps;
  const offersOf = ({ principal }: Call) => catalog.readOffers(principal.catalogVersion);
  const showLocation = (
    { id, slug, name, country, drivers }: OfferedLocation,
    { availability, images }: Awaited<ReturnType<Catalog['readOffers']>>,
  ): schemas.Location => {
    const offered = new Set<string>(images.filter(isOffered).map(({ kind }) => kind));
    const able = clusters.listCapabilities(drivers);
    return {
      ...{ id, slug, name, country },
      capabilities: able.filter((one) => !needImages.has(one) || offered.has(one)),
      plans: availability
        .filter(({ locationId }) => locationId === id)
        .map((one) => ({ id: one.planId, slug: one.planSlug, available: one.isAvailable })),
    };
  };
  const idOf = ({ id }: { id: number }) => id;
  /** The entry that the path names by slug or id. */
  const find = <T extends { id: number; slug: string }>(request: FastifyRequest, all: readonly T[]): T => {
    const { id: ref } = request.params as { id: string };
    const found = all.find(({ id, slug }) => slug === ref || String(id) === ref);
    if (found === undefined) throw notFound();
    return found;
  };
  return {
    async listPlans(call, request, reply) {
      const { plans, availability } = await offersOf(call);
      const { page, pagination } = pageOf(request, reply, plans.filter(isOffered), idOf);
      return { plans: page.map((plan) => showPlan(plan, availability, call.tenant.currency)), pagination };
    },
    async readPlan(call, request) {
      const { plans, availability } = await offersOf(call);
      return showPlan(find(request, plans), availability, call.tenant.currency);
    },
    async listImages(call, request, reply) {
      const { images } = await offersOf(call);
      const { kind = 'system' } = readImagesQuery(request);
      const ofKind = images.filter((image) => image.isOffered && image.kind === kind);
      const { page, pagination } = pageOf(request, reply, ofKind, idOf, ['kind']);
      return { images: page.map(showImage), pagination };
    },
    readImage: async (call, request) => showImage(find(request, (await offersOf(call)).images)),
    async listLocations(call, request, reply) {
      const offers = await offersOf(call);
      const { page, pagination } = pageOf(request, reply, offers.locations, idOf);
      return { locations: page.map((one) => showLocation(one, offers)), pagination };
    },
    async readLocation(call, request) {
      const offers = await offersOf(call);
      return showLocation(find(request, offers.locations), offers);
    },
    async readPrices(call) {
      const { includedPerMonth, price } = deps.metering;
      const { rules, poolCounts, tbQuanta } = deps.bandwidth;
      const { snapshotGbQuanta } = deps.servers;
      const plans = (await offersOf(call)).plans.filter(isOffered);
      return {
        currency: call.tenant.currency,
        plans: plans.map((plan) => ({ id: plan.id, slug: plan.slug, ...showPrices(plan) })),
        api_requests: {
          included_per_month: includedPerMonth,
          per_requests: price.unitRequests,
          amount: formatQuanta(price.rateQuanta),
        },
        bandwidth: {
          included_tb: rules.baseBytes / 1_000_000_000_000,
          per_additional_server_tb: rules.perServerBytes / 1_000_000_000_000,
          pool_counts: poolCounts,
          per_tb: tbQuanta === 0 ? null : formatQuanta(tbQuanta),
        },
        snapshots: { per_gb_month: snapshotGbQuanta === 0 ? null : formatQuanta(snapshotGbQuanta) },
      } satisfies schemas.Prices;
    },
  } satisfies Handlers;
}

const isOffered = (one: Offer<unknown>) => one.isOffered;

/** Capabilities of no use without an image of that kind. */
const needImages: ReadonlySet<Capability> = new Set(['rescue', 'iso']);

const showPrices = ({ hourlyQuanta, monthlyCapQuanta }: Plan) => ({
  price_hourly: formatQuanta(hourlyQuanta),
  price_monthly_cap: formatQuanta(monthlyCapQuanta),
});

function showPlan(plan: Offer<Plan>, availability: readonly Availability[], currency: string): schemas.Plan {
  return {
    id: plan.id,
    slug: plan.slug,
    name: plan.name,
    vcpus: plan.vcpus,
    memory_mb: plan.memoryMb,
    disk_gb: plan.diskGb,
    port_mbit: plan.portMbit,
    ...showPrices(plan),
    currency,
    offered: plan.isOffered,
    locations: availability
      .filter(({ planId }) => planId === plan.id)
      .map((one) => ({ id: one.locationId, slug: one.locationSlug, available: one.isAvailable })),
  };
}

function showImage({ id, slug, name, family, kind, isOffered }: Offer<Image>): schemas.Image {
  return { id, slug, name, family, kind, offered: isOffered };
}
