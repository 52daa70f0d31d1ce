/** Bodies about workspaces. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { Id, Moment, OneOf, Pagination } from './schema-kit.ts';

export const Tenant = Type.Object(
  {
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
  },
  { title: 'Tenant' },
);
export type Tenant = Static<typeof Tenant>;
export const TenantList = Type.Object(
  { tenants: Type.Array(Tenant), pagination: Pagination },
  { title: 'TenantList' },
);

export const Member = Type.Object(
  {
    id: Id,
    name: Type.String(),
    email: Type.String(),
    role: OneOf(['owner', 'member'], 'Owners create keys and webhooks, and invite people.'),
    active: Type.Boolean({ description: 'False: the person can’t sign in.' }),
  },
  { title: 'Member' },
);
export type Member = Static<typeof Member>;
export const MemberList = Type.Object(
  { members: Type.Array(Member), pagination: Pagination },
  { title: 'MemberList' },
);
