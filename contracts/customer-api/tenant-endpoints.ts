import { type Endpoint, ok } from './endpoint.ts';
import { TenantList } from './tenant-schemas.ts';

/** Workspaces. */
export const tenantEndpoints = [
  {
    id: 'listTenants',
    method: 'GET',
    path: '/tenants',
    versions: ['v2'],
    summary: 'List workspaces',
    description:
      'The workspaces that the key may act on, the default one first. `api_access` says whether a call on one would pass its account gate, and why not.',
    params: {},
    selectsTenant: false,
    responses: ok(TenantList, 'The workspaces.'),
    errors: [],
  },
] as const satisfies readonly Endpoint[];
