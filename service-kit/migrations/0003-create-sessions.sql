-- Browser sessions. The row holds the digest of the cookie's secret, never the secret.
create table sessions (
  digest bytea primary key,
  person_id bigint not null,
  csrf_token text not null,
  created_at timestamptz not null default svc_now(),
  last_seen_at timestamptz not null default svc_now(),
  expires_at timestamptz not null
);
create index sessions_person_id on sessions (person_id);
create index sessions_expires_at on sessions (expires_at);

-- Failed sign-ins by source address and by e-mail, for throttling; a bucket is a window of minutes.
create table sign_in_failures (
  bucket text not null,
  window_start timestamptz not null,
  failures integer not null,
  primary key (bucket, window_start)
);
