-- Public SSH keys that a workspace keeps under a name, for the servers that it orders.
create table ssh_keys (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants,
  name text not null,
  -- As a line of authorized_keys, without options: kind, body and comment.
  public_key text not null,
  -- `SHA256:` and the base64 of the hash of the body, as ssh-keygen writes it.
  fingerprint text not null,
  created_at timestamptz not null default svc_now(),
  updated_at timestamptz not null default svc_now(),
  unique (tenant_id, fingerprint)
);
create unique index ssh_keys_name on ssh_keys (tenant_id, lower(name));
