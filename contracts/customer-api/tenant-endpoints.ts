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
      'The workspaces of the key, the default one first. `api_access` says whether calls are allowed for a workspace, or why not.',
    params: {},
    selectsTenant: false,
    responses: ok(TenantList, 'The workspaces.'),
    errors: [],
  },
] as const satisfies readonly Endpoint[];
