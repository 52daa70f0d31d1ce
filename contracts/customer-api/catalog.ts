/** Bodies about what can be ordered, and what it costs. */
import { type Static, Type } from 'typebox';
import { capabilities, imageKinds } from '#contracts/capabilities.ts';
import { Nullable, Strict } from '../scalars.ts';
import { type EndpointDeclaration, ok, page } from './endpoint.ts';
import { Id, Money, OneOf, PageOf, ShortListQuery, Titled } from './schema-kit.ts';

const offered = Type.Boolean({
  description: 'False: servers still have it, and new ones can’t be ordered with it.',
});
const available = Type.Boolean({
  description: 'Whether there is capacity for another server with a public address.',
});
const prices = { price_hourly: Money, price_monthly_cap: Money };

export const Plan = Titled('Plan', {
  id: Id,
  slug: Type.String(),
  name: Type.String(),
  vcpus: Type.Integer(),
  memory_mb: Type.Integer(),
  disk_gb: Type.Integer(),
  port_mbit: Nullable(
    Type.Integer({
      description:
        'Mbit/s that the public interface sends, and receives; null: as many as the hypervisor can.',
    }),
  ),
  ...prices,
  currency: Type.String(),
  offered,
  locations: Type.Array(Type.Object({ id: Id, slug: Type.String(), available })),
});
export type Plan = Static<typeof Plan>;

export const Image = Titled('Image', {
  id: Id,
  slug: Type.String(),
  name: Type.String(),
  family: Type.String(),
  kind: OneOf(
    imageKinds,
    'Servers are made from a `system`. A `rescue` is what a server starts from in place of its disk, an `iso` is for its CD drive.',
  ),
  offered,
});
export type Image = Static<typeof Image>;

export const Location = Titled('Location', {
  id: Id,
  slug: Type.String(),
  name: Type.String(),
  country: Type.String({ description: 'ISO 3166-1 alpha-2.' }),
  capabilities: Type.Array(OneOf(capabilities), {
    description: 'What every server of the location can do; others are refused with 422.',
  }),
  plans: Type.Array(Type.Object({ id: Id, slug: Type.String(), available })),
});
export type Location = Static<typeof Location>;

export const PlanList = PageOf('PlanList', 'plans', Plan);
export const ImageList = PageOf('ImageList', 'images', Image);
export const ListImagesQuery = Strict({
  kind: Type.Optional(OneOf(imageKinds, 'Default: `system`.')),
  ...ShortListQuery.properties,
});
export type ListImagesQuery = Static<typeof ListImagesQuery>;
export const LocationList = PageOf('LocationList', 'locations', Location);

export const Prices = Type.Object(
  {
    currency: Type.String(),
    plans: Type.Array(
      Type.Object(
        { id: Id, slug: Type.String(), ...prices },
        { description: 'A server costs its hourly price until the monthly cap is reached.' },
      ),
    ),
    api_requests: Type.Object({
      included_per_month: Type.Integer({ description: 'Free requests per UTC calendar month.' }),
      per_requests: Type.Integer(),
      amount: Money,
    }),
    bandwidth: Type.Object({
      included_tb: Type.Number({ description: 'Bandwidth pool of every account per UTC calendar month.' }),
      per_additional_server_tb: Type.Number({
        description: 'What each server after the first adds in a full month.',
      }),
      pool_counts: OneOf(['outbound', 'total'], 'Direction of the bytes that count against the pool.'),
      per_tb: Nullable(Money),
    }),
    snapshots: Type.Object({ per_gb_month: Nullable(Money) }),
  },
  {
    title: 'Prices',
    description:
      '`bandwidth.per_tb` is what 10^12 bytes beyond the pool cost; null: nothing is charged. A new or higher price holds from the next month on; `GET /account` has the one of this month. `snapshots.per_gb_month` is what 10^9 bytes of snapshots cost in 730 hours; null: nothing.',
  },
);
export type Prices = Static<typeof Prices>;

/** What is common to them: the catalogue changes rarely. */
const read = { maxAgeSeconds: 300 } as const;
const list = { ...read, query: ShortListQuery } as const;
const one = { ...read, params: { id: 'catalog' } } as const;

/** What can be ordered, and what it costs. */
export const catalogEndpoints = [
  {
    ...list,
    id: 'listPlans',
    call: 'GET /plans',
    summary: 'List plans',
    description:
      'The plans that can be ordered, cheapest first, with prices in the currency of the workspace and availability per location.',
    responses: page(PlanList, 'The plans.'),
  },
  {
    ...one,
    id: 'readPlan',
    call: 'GET /plans/{id}',
    summary: 'Read a plan',
    description: 'One plan, also one that is no longer offered. Servers keep the price they were ordered at.',
    responses: ok(Plan, 'The plan.'),
  },
  {
    ...list,
    id: 'listImages',
    call: 'GET /images',
    query: ListImagesQuery,
    summary: 'List images',
    description:
      'The operating systems that servers can be ordered with, with `kind=rescue` those that a server can be rescued with, or with `kind=iso` ISOs for its CD drive.',
    responses: page(ImageList, 'The images.'),
  },
  {
    ...one,
    id: 'readImage',
    call: 'GET /images/{id}',
    summary: 'Read an image',
    description: 'One image, also one that is no longer offered.',
    responses: ok(Image, 'The image.'),
  },
  {
    ...list,
    id: 'listLocations',
    call: 'GET /locations',
    summary: 'List locations',
    description: 'The locations of servers, and which plans are available there.',
    responses: page(LocationList, 'The locations.'),
  },
  {
    ...one,
    id: 'readLocation',
    call: 'GET /locations/{id}',
    summary: 'Read a location',
    description: 'One location, and which plans are available there.',
    responses: ok(Location, 'The location.'),
  },
  {
    ...read,
    id: 'readPrices',
    call: 'GET /prices',
    summary: 'Read all prices',
    description: 'The price of each plan that can be ordered, and of API requests above the free quota.',
    responses: ok(Prices, 'The prices.'),
  },
] as const satisfies readonly EndpointDeclaration[];
