/** Bodies about workspaces. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { type EndpointDeclaration, page } from './endpoint.ts';
import { Id, Moment, OneOf, PageOf, ShortListQuery, Titled } from './schema-kit.ts';

export const Tenant = Titled('Tenant', {
  id: Id,
  name: Type.String(),
  slug: Type.String(),
  status: OneOf(['active', 'suspended', 'closed', 'no_billing_profile']),
  is_default: Type.Boolean({ description: 'Used by v1 and by v2 without `tenant`.' }),
  billing_account_id: Id,
  currency: Type.String(),
  server_count: Type.Integer(),
  network_count: Type.Integer({ description: 'Private networks.' }),
  api_access: Type.Object({
    allowed: Type.Boolean(),
    code: Nullable(Type.String()),
    reason: Nullable(Type.String()),
  }),
  created_at: Moment,
});
export type Tenant = Static<typeof Tenant>;
export const TenantList = PageOf('TenantList', 'tenants', Tenant);

export const Member = Titled('Member', {
  id: Id,
  name: Type.String(),
  email: Type.String(),
  role: OneOf(['owner', 'member'], 'Owners create keys and webhooks, and invite people.'),
  active: Type.Boolean({ description: 'False: the person can’t sign in.' }),
});
export type Member = Static<typeof Member>;
export const MemberList = PageOf('MemberList', 'members', Member);

/** Workspaces, and who is in them. */
export const tenantEndpoints = [
  {
    id: 'listTenants',
    call: 'GET /tenants',
    summary: 'List workspaces',
    description:
      'The workspaces of the key, the default one first. `api_access` says whether calls are allowed for a workspace, or why not.',
    query: ShortListQuery,
    selectsTenant: false,
    responses: page(TenantList, 'A page of workspaces.'),
  },
  {
    id: 'listMembers',
    call: 'GET /members',
    summary: 'List members',
    description:
      'The people of the organization of the workspace, owners first. They are invited in the portal.',
    query: ShortListQuery,
    responses: page(MemberList, 'A page of members.'),
  },
] as const satisfies readonly EndpointDeclaration[];
