import { Account, BandwidthQuery, ServerBandwidth } from './bandwidth-schemas.ts';
import { both, type Endpoint, ok } from './endpoint.ts';

/** The account, and what its servers used of its bandwidth. */
export const bandwidthEndpoints = [
  {
    id: 'readAccount',
    method: 'GET',
    path: '/account',
    versions: both,
    summary: 'Read the account',
    description:
      'Credit, limits, counted requests and the bandwidth pool of the present month. All servers of the account share the allowances.',
    params: {},
    selectsTenant: true,
    // It counts this very call, so no tag of it would ever match.
    responses: { 200: { description: 'The account.', schema: Account } },
    errors: [],
  },
  {
    id: 'readServerBandwidth',
    method: 'GET',
    path: '/servers/{id}/bandwidth',
    versions: both,
    summary: 'Read the bandwidth of a server',
    description:
      'Traffic of the server by UTC month or day, newest first; the last twelve months unless `from` and `to` are set. The present month is always included: with zeros and `sampled: false` before the first measurement.',
    params: { id: 'server' },
    query: BandwidthQuery,
    selectsTenant: true,
    responses: ok(ServerBandwidth, 'The history.'),
    errors: ['invalid_fields', 'not_found'],
  },
] as const satisfies readonly Endpoint[];
