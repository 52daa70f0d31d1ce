-- Keys that seal secrets in other tables (AES-256-GCM). Each is kept wrapped by a key that is not in the database: of a
-- key file, or of a key management service. The newest one seals; older ones open what they sealed until it is sealed anew.
create table data_keys (
  id integer generated always as identity primary key,
  wrapped text not null,
  -- Which key wraps it: `file:` and the fingerprint of the key in the file, or `command`.
  wrapped_by text not null,
  -- Shows that what was unwrapped is this key, before anything is sealed with it. Tells nothing of the key.
  check_value bytea not null,
  created_at timestamptz not null default svc_now()
);

-- The program seals clear values at its start: SQL has no key. The clear column is empty afterwards.
update totp_secrets set sealed = substr(sealed, length('plain:') + 1);
alter table totp_secrets alter column sealed drop not null;
alter table totp_secrets alter column sealed type bytea using convert_to(sealed, 'UTF8');
alter table totp_secrets rename column sealed to clear_secret;
alter table totp_secrets add column sealed_secret bytea;
alter table totp_secrets add check (num_nonnulls(clear_secret, sealed_secret) = 1);
