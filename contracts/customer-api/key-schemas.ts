/** What a key is told about itself. */
import { type Static, Type } from 'typebox';
import { Id, Moment, Nullable, OneOf } from './schema-kit.ts';

export const Key = Type.Object(
  {
    key_id: Type.String({ description: 'The public part of the token.' }),
    name: Type.String(),
    prefix: Type.String({ description: 'How the token begins.' }),
    scope: OneOf(['read', 'full'], 'A read key may use safe methods only.'),
    tenant_access: OneOf(['all', 'selected'], '`all`: also workspaces that are made later.'),
    tenants: Type.Array(Id, {
      description: 'Workspaces that the key may act on now, the default one first.',
    }),
    default_tenant_id: Id,
    organization_id: Id,
    created_at: Moment,
    expires_at: Nullable(Moment),
    last_used_at: Nullable(Moment),
    rate_limit: Type.Object({
      limit: Type.Integer({ description: 'Requests within any window.' }),
      window_s: Type.Integer(),
      remaining: Type.Integer({ description: 'After this call.' }),
    }),
  },
  { title: 'Key' },
);
export type Key = Static<typeof Key>;
