-- A ticket opens the console of a server once, within a minute. Its secret is kept as a digest, as those of sessions are.
create table console_tickets (
  digest bytea primary key check (length(digest) = 32),
  server_id bigint not null references servers (id),
  person_id bigint not null references people (id),
  -- The console closes with the person's session, or with the key.
  session_id uuid,
  key_id text,
  expires_at timestamptz not null,
  check ((session_id is null) <> (key_id is null))
);
create index console_tickets_expires_at on console_tickets (expires_at);
