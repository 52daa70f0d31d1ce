/** What a key is told about itself. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { Id, Moment, OneOf } from './schema-kit.ts';

export const Key = Type.Object(
  {
    key_id: Type.String({ description: 'The public part of the token.' }),
    name: Type.String(),
    prefix: Type.String({ description: 'Beginning of the token.' }),
    scope: OneOf(['read', 'full'], 'A read key may use GET and HEAD only.'),
    tenant_access: OneOf(['all', 'selected'], '`all`: includes workspaces that are created later.'),
    tenants: Type.Array(Id, {
      description: 'Present workspaces of the key, the default one first.',
    }),
    default_tenant_id: Id,
    organization_id: Id,
    created_at: Moment,
    expires_at: Nullable(Moment),
    last_used_at: Nullable(Moment),
    rate_limit: Type.Object({
      limit: Type.Integer({ description: 'Requests per window.' }),
      window_s: Type.Integer(),
      remaining: Type.Integer({ description: 'After this call.' }),
    }),
  },
  { title: 'Key' },
);
export type Key = Static<typeof Key>;
