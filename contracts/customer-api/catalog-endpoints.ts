import { Image, ImageList, Location, LocationList, Plan, PlanList, Prices } from './catalog-schemas.ts';
import { type Endpoint, ok } from './endpoint.ts';
import { ShortListQuery } from './schema-kit.ts';

const entry = { id: 'catalog' } as const;
/** What is common to them: the catalogue changes rarely. */
const read = { method: 'GET', versions: ['v2'], selectsTenant: true, maxAgeSeconds: 300 } as const;
const list = { ...read, params: {}, query: ShortListQuery, errors: ['invalid_cursor'] } as const;
const one = { ...read, params: entry, errors: ['not_found'] } as const;
const page = (schema: typeof PlanList | typeof ImageList | typeof LocationList, description: string) => ({
  200: { description, schema, headers: ['ETag', 'Link'] },
});

/** What can be ordered, and what it costs. */
export const catalogEndpoints = [
  {
    ...list,
    id: 'listPlans',
    path: '/plans',
    summary: 'List plans',
    description:
      'The plans that can be ordered, cheapest first, with prices in the currency of the workspace and availability per location.',
    responses: page(PlanList, 'The plans.'),
  },
  {
    ...one,
    id: 'readPlan',
    path: '/plans/{id}',
    summary: 'Read a plan',
    description: 'One plan, also one that is no longer offered. Servers keep the price they were ordered at.',
    responses: ok(Plan, 'The plan.'),
  },
  {
    ...list,
    id: 'listImages',
    path: '/images',
    summary: 'List images',
    description: 'The operating systems that servers can be ordered with.',
    responses: page(ImageList, 'The images.'),
  },
  {
    ...one,
    id: 'readImage',
    path: '/images/{id}',
    summary: 'Read an image',
    description: 'One image, also one that is no longer offered.',
    responses: ok(Image, 'The image.'),
  },
  {
    ...list,
    id: 'listLocations',
    path: '/locations',
    summary: 'List locations',
    description: 'The locations of servers, and which plans are available there.',
    responses: page(LocationList, 'The locations.'),
  },
  {
    ...one,
    id: 'readLocation',
    path: '/locations/{id}',
    summary: 'Read a location',
    description: 'One location, and which plans are available there.',
    responses: ok(Location, 'The location.'),
  },
  {
    ...read,
    id: 'readPrices',
    path: '/prices',
    params: {},
    summary: 'Read all prices',
    description: 'The price of each plan that can be ordered, and of API requests above the free quota.',
    responses: ok(Prices, 'The prices.'),
    errors: [],
  },
] as const satisfies readonly Endpoint[];
