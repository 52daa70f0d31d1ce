-- What a person is shown of their sessions, and when they last proved who they are.
alter table sessions
  -- Names a session on pages; the digest never leaves the database.
  add column id uuid not null default gen_random_uuid(),
  -- The source address and the User-Agent header of the sign-in; null for sessions older than this migration.
  add column source text,
  add column user_agent text,
  add column authenticated_at timestamptz;
update sessions set authenticated_at = created_at;
alter table sessions
  alter column authenticated_at set not null,
  alter column authenticated_at set default svc_now();
create unique index sessions_id on sessions (id);
