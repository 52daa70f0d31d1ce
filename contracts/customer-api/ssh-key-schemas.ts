/** Bodies about SSH keys. */
import { type Static, Type } from 'typebox';
import { Id, Moment, Name, Pagination, TenantSelector } from './schema-kit.ts';

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
