/** Bodies about SSH keys. */
import { type Static, Type } from 'typebox';
import { bodyErrors, conditionErrors, type Endpoint, idempotencyErrors, ok } from './endpoint.ts';
import {
  Id,
  Moment,
  Name,
  Pagination,
  SelectionRequest,
  ShortListQuery,
  TenantSelector,
} from './schema-kit.ts';

export const SshKey = Type.Object(
  {
    id: Id,
    tenant_id: Id,
    name: Type.String(),
    public_key: Type.String({ description: 'Kind, body and comment, without options.' }),
    fingerprint: Type.String({ description: '`SHA256:…`, as `ssh-keygen -l` shows it.' }),
    created_at: Moment,
    updated_at: Moment,
  },
  { title: 'SshKey' },
);
export type SshKey = Static<typeof SshKey>;

export const SshKeyList = Type.Object(
  { ssh_keys: Type.Array(SshKey), pagination: Pagination },
  { title: 'SshKeyList' },
);

export const CreateSshKeyRequest = Type.Object(
  {
    name: Name,
    public_key: Type.String({
      minLength: 16,
      maxLength: 8192,
      description: 'The content of a file such as `~/.ssh/id_ed25519.pub`; white space around it is ignored.',
    }),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'CreateSshKeyRequest', additionalProperties: false },
);
export type CreateSshKeyRequest = Static<typeof CreateSshKeyRequest>;

export const UpdateSshKeyRequest = Type.Object(
  { name: Name, tenant: Type.Optional(TenantSelector) },
  { title: 'UpdateSshKeyRequest', additionalProperties: false },
);
export type UpdateSshKeyRequest = Static<typeof UpdateSshKeyRequest>;

const onKey = { id: 'ssh-key' } as const;

/** Public SSH keys that a workspace keeps for the servers that it orders. */
export const sshKeyEndpoints = [
  {
    id: 'listSshKeys',
    method: 'GET',
    path: '/ssh-keys',
    versions: ['v2'],
    summary: 'List SSH keys',
    description: 'The SSH keys of the workspace, by name.',
    params: {},
    query: ShortListQuery,
    selectsTenant: true,
    responses: { 200: { description: 'The keys.', schema: SshKeyList, headers: ['ETag', 'Link'] } },
    errors: ['invalid_cursor', 'invalid_fields'],
  },
  {
    id: 'createSshKey',
    method: 'POST',
    path: '/ssh-keys',
    versions: ['v2'],
    summary: 'Add an SSH key',
    description:
      'Keeps a public key under a name, which `ssh_keys` of a new server may use. Names and keys are unique in the workspace.',
    params: {},
    body: CreateSshKeyRequest,
    headers: ['Idempotency-Key'],
    selectsTenant: true,
    responses: {
      201: {
        description: 'The key.',
        schema: SshKey,
        headers: ['ETag', 'Location', 'Idempotent-Replayed'],
      },
    },
    errors: [
      ...bodyErrors,
      ...idempotencyErrors,
      'ssh_key_exists',
      'limit_exceeded',
      'read_only_key',
      // Of a repetition, when the key was deleted meanwhile.
      'not_found',
    ],
  },
  {
    id: 'readSshKey',
    method: 'GET',
    path: '/ssh-keys/{id}',
    versions: ['v2'],
    summary: 'Read an SSH key',
    description: 'One SSH key of the workspace.',
    params: onKey,
    selectsTenant: true,
    responses: ok(SshKey, 'The key.'),
    errors: ['not_found'],
  },
  {
    id: 'updateSshKey',
    method: 'PATCH',
    path: '/ssh-keys/{id}',
    versions: ['v2'],
    summary: 'Rename an SSH key',
    description: 'Changes the name. For another public key, add it and delete this one.',
    params: onKey,
    body: UpdateSshKeyRequest,
    headers: ['If-Match'],
    selectsTenant: true,
    responses: ok(SshKey, 'The key.'),
    errors: [...bodyErrors, ...conditionErrors, 'not_found', 'ssh_key_exists', 'read_only_key'],
  },
  {
    id: 'deleteSshKey',
    method: 'DELETE',
    path: '/ssh-keys/{id}',
    versions: ['v2'],
    summary: 'Delete an SSH key',
    description: 'New servers can’t be ordered with it any more. Present servers keep it.',
    params: onKey,
    body: SelectionRequest,
    isBodyOptional: true,
    headers: ['If-Match'],
    selectsTenant: true,
    responses: { 204: { description: 'Deleted.' } },
    errors: [...bodyErrors, ...conditionErrors, 'not_found', 'read_only_key'],
  },
] as const satisfies readonly Endpoint[];
