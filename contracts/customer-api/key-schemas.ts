/** What a key is told about itself. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { Id, Moment, momentPattern, Name, OneOf, Pagination, TenantSelector } from './schema-kit.ts';

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

const keyFields = {
  key_id: Type.String({ description: 'The public part of the token.' }),
  name: Type.String(),
  prefix: Type.String({ description: 'Beginning of the token.' }),
  scope: OneOf(['read', 'full'], 'A read key may use GET and HEAD only.'),
  tenant_ids: Nullable(
    Type.Array(Id, { description: 'Workspaces of the key; null: all of the organization.' }),
  ),
  organization_id: Id,
  person_id: Type.Integer({ minimum: 1, description: 'For whom the key acts.' }),
  active: Type.Boolean({ description: 'Neither revoked nor expired.' }),
  created_at: Moment,
  expires_at: Nullable(Moment),
  revoked_at: Nullable(Moment),
  last_used_at: Nullable(Moment),
};
export const ApiKey = Type.Object(keyFields, { title: 'ApiKey' });
export type ApiKey = Static<typeof ApiKey>;
export const ApiKeyList = Type.Object(
  { keys: Type.Array(ApiKey), pagination: Pagination },
  { title: 'ApiKeyList' },
);
export const CreatedApiKey = Type.Object(
  { ...keyFields, token: Type.String({ description: 'Only in this answer.' }) },
  { title: 'CreatedApiKey' },
);
export type CreatedApiKey = Static<typeof CreatedApiKey>;

export const CreateApiKeyRequest = Type.Object(
  {
    name: Name,
    scope: OneOf(['read', 'full'], 'A read key may use GET and HEAD only.'),
    tenant_ids: Type.Optional(
      Type.Array(Id, {
        minItems: 1,
        maxItems: 100,
        'x-resource': 'tenant',
        description:
          'Workspaces of the new key, among those of the calling key. Default: the one of the call.',
      }),
    ),
    expires_at: Type.Optional(
      Nullable(
        Type.String({
          maxLength: 40,
          pattern: momentPattern,
          description: 'In the future, and at most the expiry of the calling key, which is the default.',
        }),
      ),
    ),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'CreateApiKeyRequest', additionalProperties: false },
);
export type CreateApiKeyRequest = Static<typeof CreateApiKeyRequest>;
