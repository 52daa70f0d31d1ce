-- Single sign-on with the other program: this program's key, the other program, the accounts of its operators, and
-- assertions that were used.

-- The Ed25519 key that signs assertions about our operators.
create table sign_on_keys (
  id integer primary key default 1 check (id = 1),
  public_key text not null,
  sealed_key bytea,
  clear_key bytea,
  created_at timestamptz not null default svc_now(),
  check (num_nonnulls(sealed_key, clear_key) = 1)
);

-- The other program. Both directions are off until an operator turns them on.
create table sign_on_peers (
  id integer primary key default 1 check (id = 1),
  -- Without a trailing slash.
  address text not null,
  public_key text not null,
  -- Its operators may be signed in here.
  is_accepted boolean not null default false,
  -- Our operators may be signed in there, and pages link to it.
  is_offered boolean not null default false,
  updated_at timestamptz not null default svc_now()
);

-- Which operator of the other program is which person here. One to one, and only while the other program has this key.
create table sign_on_accounts (
  subject_id bigint primary key,
  -- As the other program told it when they were linked; nothing is decided by it.
  subject_email text,
  person_id bigint not null unique,
  linked_at timestamptz not null default svc_now(),
  last_used_at timestamptz
);

-- Assertions that were accepted: none is accepted twice, on any replica. A ticket is the digest of a cookie of the browser
-- that brought it, and null once a session was begun with it.
create table sign_on_answers (
  nonce bytea primary key,
  ticket bytea unique,
  state text not null,
  path text not null,
  subject_id bigint not null,
  subject_email text not null,
  authenticated_at timestamptz not null,
  has_second_factor boolean not null,
  arrived_at timestamptz not null default svc_now(),
  -- After that its assertion is refused by its time.
  kept_until timestamptz not null
);
create index sign_on_answers_kept_until on sign_on_answers (kept_until);
