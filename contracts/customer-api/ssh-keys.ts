/** Bodies about SSH keys. */
import { type Static, Type } from 'typebox';
import { created, type EndpointDeclaration, ok, page } from './endpoint.ts';
import {
  Id,
  Moment,
  Name,
  PageOf,
  RequestBody,
  SelectionRequest,
  ShortListQuery,
  Titled,
} from './schema-kit.ts';

export const SshKey = Titled('SshKey', {
  id: Id,
  tenant_id: Id,
  name: Type.String(),
  public_key: Type.String({ description: 'Kind, body and comment, without options.' }),
  fingerprint: Type.String({ description: '`SHA256:…`, as `ssh-keygen -l` shows it.' }),
  created_at: Moment,
  updated_at: Moment,
});
export type SshKey = Static<typeof SshKey>;

export const SshKeyList = PageOf('SshKeyList', 'ssh_keys', SshKey);

export const CreateSshKeyRequest = RequestBody('CreateSshKeyRequest', {
  name: Name,
  public_key: Type.String({
    minLength: 16,
    maxLength: 8192,
    description: 'The content of a file such as `~/.ssh/id_ed25519.pub`; white space around it is ignored.',
  }),
});
export type CreateSshKeyRequest = Static<typeof CreateSshKeyRequest>;

export const UpdateSshKeyRequest = RequestBody('UpdateSshKeyRequest', { name: Name });
export type UpdateSshKeyRequest = Static<typeof UpdateSshKeyRequest>;

const onKey = { id: 'ssh-key' } as const;

/** Public SSH keys that a workspace keeps for the servers that it orders. */
export const sshKeyEndpoints = [
  {
    id: 'listSshKeys',
    call: 'GET /ssh-keys',
    summary: 'List SSH keys',
    description: 'The SSH keys of the workspace, by name.',
    query: ShortListQuery,
    responses: page(SshKeyList, 'The keys.'),
  },
  {
    id: 'createSshKey',
    call: 'POST /ssh-keys',
    summary: 'Add an SSH key',
    description:
      'Keeps a public key under a name, which `ssh_keys` of a new server may use. Names and keys are unique in the workspace.',
    body: CreateSshKeyRequest,
    headers: ['Idempotency-Key'],
    responses: created(SshKey, 'The key.'),
    errors: [
      'ssh_key_exists',
      'limit_exceeded',
      // Of a repetition, when the key was deleted meanwhile.
      'not_found',
    ],
  },
  {
    id: 'readSshKey',
    call: 'GET /ssh-keys/{id}',
    summary: 'Read an SSH key',
    description: 'One SSH key of the workspace.',
    params: onKey,
    responses: ok(SshKey, 'The key.'),
  },
  {
    id: 'updateSshKey',
    call: 'PATCH /ssh-keys/{id}',
    summary: 'Rename an SSH key',
    description: 'Changes the name. For another public key, add it and delete this one.',
    params: onKey,
    body: UpdateSshKeyRequest,
    headers: ['If-Match'],
    responses: ok(SshKey, 'The key.'),
    errors: ['ssh_key_exists'],
  },
  {
    id: 'deleteSshKey',
    call: 'DELETE /ssh-keys/{id}',
    summary: 'Delete an SSH key',
    description: 'New servers can’t be ordered with it any more. Present servers keep it.',
    params: onKey,
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 204: { description: 'Deleted.' } },
  },
] as const satisfies readonly EndpointDeclaration[];
