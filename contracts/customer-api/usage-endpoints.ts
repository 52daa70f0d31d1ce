import { Type } from 'typebox';
import type { Endpoint } from './endpoint.ts';
import { Usage, UsageQuery } from './usage-schemas.ts';

/** Counted requests. */
export const usageEndpoints = [
  {
    id: 'readUsage',
    method: 'GET',
    path: '/usage',
    versions: ['v2'],
    summary: 'Read the requests of a month',
    description:
      'Counted requests of the workspace’s account in a UTC calendar month: by key, by day, and the cost of overage. Overage never blocks a call.',
    params: {},
    query: UsageQuery,
    selectsTenant: true,
    responses: {
      200: {
        description: 'The month; with `Accept: text/csv` a header line and one line per day or key.',
        schema: Usage,
        alsoAs: { 'text/csv': Type.String() },
      },
    },
    errors: ['invalid_fields'],
  },
] as const satisfies readonly Endpoint[];
