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
      'What the key of this very call may do, when it expires and what is left of its requests per minute. It says nothing about other keys.',
    params: {},
    selectsTenant: false,
    // It tells what is left after this very call, so no tag of it would ever match.
    responses: { 200: { description: 'The key.', schema: Key } },
    errors: [],
  },
] as const satisfies readonly Endpoint[];
