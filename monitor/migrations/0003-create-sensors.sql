-- A sensor is one hypervisor host. The row holds the digest of its credential's secret, never the secret.
create table sensors (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  host_name text not null,
  node text not null,
  credential_id text not null unique,
  credential_digest bytea not null,
  enrolled_at timestamptz not null default svc_now(),
  revoked_at timestamptz
);
create index sensors_site_id on sensors (site_id);

-- One-time enrolment tokens: usable once, for one hour.
create table enrolment_tokens (
  id bigint generated always as identity primary key,
  digest bytea not null unique,
  site_id bigint not null references sites,
  created_at timestamptz not null default svc_now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  sensor_id bigint references sensors
);
create index enrolment_tokens_site_id on enrolment_tokens (site_id);
create index enrolment_tokens_sensor_id on enrolment_tokens (sensor_id);

-- What a sensor was last heard to say. Apart from `sensors`, so that a write here never delays its authentication.
create table sensor_contacts (
  sensor_id bigint primary key references sensors,
  last_contact_at timestamptz not null,
  sensor_version text not null,
  spool_id uuid not null,
  sequence bigint not null,
  newest_minute timestamptz
);
