-- Invitations into an organization. The row holds the digest of the link's secret, never the secret.
create table invitations (
  id bigint generated always as identity primary key,
  organization_id bigint not null references organizations (id),
  email text not null check (email = lower(email)),
  digest bytea not null unique,
  invited_by_person_id bigint references people (id),
  created_at timestamptz not null default svc_now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  revoked_at timestamptz
);
create index invitations_organization_id on invitations (organization_id);
create index invitations_invited_by_person_id on invitations (invited_by_person_id);
-- One open invitation for an address and an organization: a new one takes the place of the old.
create unique index invitations_open on invitations (organization_id, email)
  where accepted_at is null and revoked_at is null;
