-- One-time links that let a person set a password. The row holds the digest of the link's secret, never the secret.
create table access_links (
  digest bytea primary key,
  person_id bigint not null,
  created_at timestamptz not null default svc_now(),
  expires_at timestamptz not null
);
create index access_links_person_id on access_links (person_id);
create index access_links_expires_at on access_links (expires_at);
