/** What a key is told about itself. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { type EndpointDeclaration, ok, page } from './endpoint.ts';
import {
  Id,
  Moment,
  momentPattern,
  Name,
  OneOf,
  Optional,
  PageOf,
  RequestBody,
  SelectionRequest,
  ShortListQuery,
  Titled,
} from './schema-kit.ts';

export const Key = Titled('Key', {
  key_id: Type.String({ description: 'The public part of the token.' }),
  name: Type.String(),
  prefix: Type.String({ description: 'Beginning of the token.' }),
  scope: OneOf(['read', 'full'], 'A read key may use GET and HEAD only.'),
  tenant_access: OneOf(['all', 'selected'], '`all`: includes workspaces that are created later.'),
  tenants: Type.Array(Id, { description: 'Present workspaces of the key, the default one first.' }),
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
});
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
export const ApiKey = Titled('ApiKey', keyFields);
export type ApiKey = Static<typeof ApiKey>;
export const ApiKeyList = PageOf('ApiKeyList', 'keys', ApiKey);
export const CreatedApiKey = Titled('CreatedApiKey', {
  ...keyFields,
  token: Type.String({ description: 'Only in this answer.' }),
});
export type CreatedApiKey = Static<typeof CreatedApiKey>;

export const CreateApiKeyRequest = RequestBody('CreateApiKeyRequest', {
  name: Name,
  scope: OneOf(['read', 'full'], 'A read key may use GET and HEAD only.'),
  ...Optional({
    tenant_ids: Type.Array(Id, {
      minItems: 1,
      maxItems: 100,
      'x-resource': 'tenant',
      description: 'Workspaces of the new key, among those of the calling key. Default: the one of the call.',
    }),
    expires_at: Nullable(
      Type.String({
        maxLength: 40,
        pattern: momentPattern,
        description: 'In the future, and at most the expiry of the calling key, which is the default.',
      }),
    ),
  }),
});
export type CreateApiKeyRequest = Static<typeof CreateApiKeyRequest>;

/** The key that calls, and those that it may see: no key sees or makes one that may do more than itself. */
export const keyEndpoints = [
  {
    id: 'readKey',
    call: 'GET /key',
    summary: 'Read the calling key',
    description:
      'Permissions, expiry and remaining requests per minute of the calling key. Other keys are not included.',
    selectsTenant: false,
    // It tells what is left after this very call, so no tag of it would ever match.
    responses: { 200: { description: 'The key.', schema: Key } },
  },
  {
    id: 'listApiKeys',
    call: 'GET /keys',
    summary: 'List API keys',
    description:
      'The keys of the workspace that reach no more workspaces than the calling key: those of its person, and of the whole organization for an owner’s key. Active ones first, then newest.',
    query: ShortListQuery,
    responses: page(ApiKeyList, 'A page of keys.'),
  },
  {
    id: 'createApiKey',
    call: 'POST /keys',
    summary: 'Create an API key',
    description:
      'Creates a key for the person of the calling key, who must be an owner of the organization. It gets no more scope, workspaces or time than the calling key. Only this answer contains the `token`: when the answer is lost, revoke the key and create another.',
    body: CreateApiKeyRequest,
    responses: { 201: { description: 'The key.', schema: CreatedApiKey, headers: ['Location'] } },
    errors: ['owner_only', 'limit_exceeded'],
  },
  {
    id: 'readApiKey',
    call: 'GET /keys/{key_id}',
    summary: 'Read an API key',
    description: 'One key of the list.',
    params: { key_id: 'key' },
    responses: ok(ApiKey, 'The key.'),
  },
  {
    id: 'revokeApiKey',
    call: 'DELETE /keys/{key_id}',
    summary: 'Revoke an API key',
    description:
      'From the next call on the key is invalid. A key may revoke itself. Revoked keys stay in the list.',
    params: { key_id: 'key' },
    body: SelectionRequest,
    responses: { 200: { description: 'The key, revoked.', schema: ApiKey } },
  },
] as const satisfies readonly EndpointDeclaration[];
