-- Second factors of people: an authenticator app, passkeys, and codes for when both are lost.

create table totp_secrets (
  person_id bigint primary key,
  -- The shared secret, as `seal` of service-kit/second-factors makes it.
  sealed text not null,
  created_at timestamptz not null default svc_now(),
  -- Null until the person has typed a first code.
  confirmed_at timestamptz,
  -- The 30-second step of the last code that was accepted: neither it nor an older one is accepted again.
  last_step bigint not null default 0
);

-- Digests of codes of 120 random bits; a used code is deleted.
create table recovery_codes (
  digest bytea primary key,
  person_id bigint not null,
  created_at timestamptz not null default svc_now()
);
create index recovery_codes_person_id on recovery_codes (person_id);

create table passkeys (
  credential_id text primary key,
  person_id bigint not null,
  public_key bytea not null,
  sign_count bigint not null,
  transports text[] not null,
  name text not null,
  created_at timestamptz not null default svc_now(),
  last_used_at timestamptz
);
create index passkeys_person_id on passkeys (person_id);

-- A browser that has shown a right password and owes the second factor. The row holds the digest of its cookie.
create table sign_in_steps (
  digest bytea primary key,
  person_id bigint not null,
  expires_at timestamptz not null
);
create index sign_in_steps_person_id on sign_in_steps (person_id);

-- Challenges that a passkey is to sign; each is used once. `person_id` is null where the passkey says who signs in.
create table passkey_challenges (
  challenge text primary key,
  person_id bigint,
  expires_at timestamptz not null
);
create index passkey_challenges_person_id on passkey_challenges (person_id);
