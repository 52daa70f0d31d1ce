import type { Endpoint } from './endpoint.ts';
import { Key } from './key-schemas.ts';

/** The key that calls. */
export const keyEndpoints = [
  {
    id: 'readKey',
    method: 'GET',
    path: '/key',
    versions: ['v2'],
    summary: 'Read the calling key',
    description:
      'Permissions, expiry and remaining requests per minute of the calling key. Other keys are not included.',
    params: {},
    selectsTenant: false,
    // It tells what is left after this very call, so no tag of it would ever match.
    responses: { 200: { description: 'The key.', schema: Key } },
    errors: [],
  },
] as const satisfies readonly Endpoint[];
