-- Customers' keys. The row holds the bare SHA-256 of the secret, never the secret (API-2.1.c). Keys are revoked, never
-- deleted.
create table api_keys (
  key_id text primary key check (key_id ~ '^[a-z0-9]{16}$'),
  digest bytea not null check (length(digest) = 32),
  name text not null,
  scope text not null check (scope in ('read', 'full')),
  organization_id bigint not null references organizations (id),
  person_id bigint not null references people (id),
  tenant_access text not null check (tenant_access in ('all', 'selected')),
  created_at timestamptz not null default svc_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index api_keys_organization_id on api_keys (organization_id);
create index api_keys_person_id on api_keys (person_id);

create table api_key_tenants (
  key_id text not null references api_keys (key_id),
  tenant_id bigint not null references tenants (id),
  primary key (key_id, tenant_id)
);
create index api_key_tenants_tenant_id on api_key_tenants (tenant_id);
