import type { Endpoint } from './endpoint.ts';
import { ShortListQuery } from './schema-kit.ts';
import { MemberList, TenantList } from './tenant-schemas.ts';

/** Workspaces, and who is in them. */
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
    query: ShortListQuery,
    selectsTenant: false,
    responses: {
      200: { description: 'A page of workspaces.', schema: TenantList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor'],
  },
  {
    id: 'listMembers',
    method: 'GET',
    path: '/members',
    versions: ['v2'],
    summary: 'List members',
    description:
      'The people of the organization of the workspace, owners first. They are invited in the portal.',
    params: {},
    query: ShortListQuery,
    selectsTenant: true,
    responses: { 200: { description: 'A page of members.', schema: MemberList, headers: ['ETag', 'Link'] } },
    errors: ['invalid_cursor'],
  },
] as const satisfies readonly Endpoint[];
