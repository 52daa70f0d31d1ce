import { bodyErrors, type Endpoint, ok } from './endpoint.ts';
import { ApiKey, ApiKeyList, CreateApiKeyRequest, CreatedApiKey, Key } from './key-schemas.ts';
import { SelectionRequest, ShortListQuery } from './schema-kit.ts';

/** The key that calls, and those that it may see: no key sees or makes one that may do more than itself. */
export const keyEndpoints = [
  {
    id: 'readKey',
    method: 'GET',
    path: '/key',
    versions: ['v2'],
    summary: 'Read the calling key',
    description:
      'Permissions, expiry and remaining requests per minute of the calling key. Other keys are not included.',
    params: {},
    selectsTenant: false,
    // It tells what is left after this very call, so no tag of it would ever match.
    responses: { 200: { description: 'The key.', schema: Key } },
    errors: [],
  },
  {
    id: 'listApiKeys',
    method: 'GET',
    path: '/keys',
    versions: ['v2'],
    summary: 'List API keys',
    description:
      'The keys of the workspace that reach no more workspaces than the calling key: those of its person, and of the whole organization for an owner’s key. Active ones first, then newest.',
    params: {},
    query: ShortListQuery,
    selectsTenant: true,
    responses: { 200: { description: 'A page of keys.', schema: ApiKeyList, headers: ['ETag', 'Link'] } },
    errors: ['invalid_cursor'],
  },
  {
    id: 'createApiKey',
    method: 'POST',
    path: '/keys',
    versions: ['v2'],
    summary: 'Create an API key',
    description:
      'Creates a key for the person of the calling key, who must be an owner of the organization. It gets no more scope, workspaces or time than the calling key. Only this answer contains the `token`: when the answer is lost, revoke the key and create another.',
    params: {},
    body: CreateApiKeyRequest,
    selectsTenant: true,
    responses: { 201: { description: 'The key.', schema: CreatedApiKey, headers: ['Location'] } },
    errors: [...bodyErrors, 'read_only_key', 'owner_only', 'limit_exceeded'],
  },
  {
    id: 'readApiKey',
    method: 'GET',
    path: '/keys/{key_id}',
    versions: ['v2'],
    summary: 'Read an API key',
    description: 'One key of the list.',
    params: { key_id: 'key' },
    selectsTenant: true,
    responses: ok(ApiKey, 'The key.'),
    errors: ['not_found'],
  },
  {
    id: 'revokeApiKey',
    method: 'DELETE',
    path: '/keys/{key_id}',
    versions: ['v2'],
    summary: 'Revoke an API key',
    description:
      'From the next call on the key is invalid. A key may revoke itself. Revoked keys stay in the list.',
    params: { key_id: 'key' },
    body: SelectionRequest,
    isBodyOptional: true,
    selectsTenant: true,
    responses: { 200: { description: 'The key, revoked.', schema: ApiKey } },
    errors: [...bodyErrors, 'not_found', 'read_only_key'],
  },
] as const satisfies readonly Endpoint[];
