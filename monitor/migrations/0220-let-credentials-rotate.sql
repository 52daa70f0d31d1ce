-- Credentials of sensors: each row holds the digest of a secret, never the secret. A sensor has one that it uses, at most one
-- that was issued to it and not used yet, and for a year those that were replaced, so that a copy of one is recognised.
create table sensor_credentials (
  id text primary key,
  sensor_id bigint not null references sensors,
  digest bytea not null,
  issued_at timestamptz not null default svc_now(),
  -- Null: it has no end, because its sensor has not shown that it can rotate.
  expires_at timestamptz,
  -- Null: issued by a rotation and not used yet. The first use replaces the others.
  first_used_at timestamptz,
  replaced_at timestamptz,
  -- When it was shown last although it had been replaced.
  misused_at timestamptz
);
create index sensor_credentials_sensor_id on sensor_credentials (sensor_id);

insert into sensor_credentials (id, sensor_id, digest, issued_at, first_used_at)
select credential_id, id, credential_digest, enrolled_at, enrolled_at from sensors;

alter table sensors
  drop column credential_id,
  drop column credential_digest,
  -- An operator asked for a rotation; null once the new credential was used.
  add column rotation_requested_at timestamptz;

-- The monitor's own reader, where there is one, tells sensors by these digests (packaging/postgres/readers.sql).
do $$
declare
  reader text := 'svc_' || current_database() || '_reader';
begin
  if exists (select 1 from pg_roles where rolname = reader) then
    execute format('grant select on sensor_credentials to %I', reader);
    execute format('grant select (rotation_requested_at) on sensors to %I', reader);
  end if;
end
$$;
