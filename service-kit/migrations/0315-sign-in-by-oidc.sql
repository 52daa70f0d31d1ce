-- Staff who sign in at an OpenID provider: who they are there, and sign-ins that are on their way.

-- Which account of the provider is which person here. Two issuers may name different people by one subject.
create table oidc_identities (
  id bigint generated always as identity primary key,
  issuer text not null,
  subject text not null,
  -- As the provider told it at the last sign-in; nothing is decided by it.
  email text not null,
  person_id bigint not null,
  -- The provider made this person: they have no other way in.
  is_managed boolean not null,
  linked_at timestamptz not null default svc_now(),
  last_used_at timestamptz not null default svc_now(),
  unique (issuer, subject),
  unique (issuer, person_id)
);

-- A browser that was sent to the provider. The rows hold digests of the state and of the browser's cookie, and each is
-- used once.
create table oidc_requests (
  state bytea primary key,
  browser bytea not null,
  purpose text not null check (purpose in ('sign_in', 'confirm', 'link')),
  -- Where the person goes afterwards.
  next text not null,
  -- Who links or confirms.
  person_id bigint,
  -- What the provider answered, for a link that the person has still to confirm.
  subject text,
  email text,
  begun_at timestamptz not null default svc_now()
);
create index oidc_requests_begun_at on oidc_requests (begun_at);

alter table sessions
  -- The session was begun at the provider, and ends with the link.
  add column identity_id bigint references oidc_identities (id) on delete cascade,
  -- When the provider last named the groups of its person.
  add column identity_checked_at timestamptz;
create index sessions_identity_id on sessions (identity_id);
