-- Port scans: when the daily full scans of a site begin, what each sensor is asked for, and what it says of them.

-- A site without a row has 22:00 in America/New_York.
create table scan_schedules (
  site_id bigint primary key references sites,
  -- Local time, such as 22:00.
  at_time text not null check (at_time ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$'),
  -- IANA name.
  time_zone text not null,
  changed_at timestamptz not null default svc_now(),
  changed_by text not null
);

-- An address of a server's interface that a plan named to a sensor. Its id is what the sensor's reports name, so a late
-- report still finds its server.
create table scan_targets (
  id bigint generated always as identity primary key,
  sensor_id bigint not null references sensors,
  site_id bigint not null references sites,
  cluster_id bigint not null,
  vm_id bigint not null,
  interface_id bigint not null,
  address inet not null,
  named_at timestamptz not null default svc_now(),
  unique (sensor_id, cluster_id, vm_id, interface_id, address)
);
create index scan_targets_site on scan_targets (site_id);
create index scan_targets_named_at on scan_targets (named_at);

-- The plan that a sensor fetched last.
create table scan_plans (
  sensor_id bigint primary key references sensors,
  revision bigint not null default 1,
  -- Of everything in the plan but its revision.
  fingerprint text not null,
  changed_at timestamptz not null default svc_now(),
  fetched_at timestamptz not null default svc_now()
);

-- One row for each scan that a sensor reported: what it said last, and its result.
create table scan_attempts (
  sensor_id bigint not null references sensors,
  scan_id uuid not null,
  site_id bigint not null references sites,
  cluster_id bigint not null,
  vm_id bigint not null,
  interface_id bigint not null,
  address inet not null,
  request_id uuid,
  -- Null until the start or the result was reported.
  profile text check (profile in ('common', 'full')),
  pool text check (pool in ('hourly', 'daily', 'customer')),
  state text not null check (state in ('running', 'complete', 'partial')),
  -- The sensor's own times.
  started_at timestamptz,
  heartbeat_at timestamptz,
  finished_at timestamptz,
  -- When the report of the result was made; null while there is none.
  result_at timestamptz,
  phase text,
  percent float8,
  paused_for text,
  packets_per_second float8,
  packets bigint,
  -- [{reason, started_at, ended_at}].
  pauses jsonb not null default '[]',
  phases jsonb not null default '[]',
  notes text[] not null default '{}',
  -- Open ports so far, [{transport, port}].
  found jsonb not null default '[]',
  -- Of the result, as the sensor said them.
  services jsonb not null default '[]',
  -- By the clock of this monitor.
  reported_at timestamptz not null default svc_now(),
  primary key (sensor_id, scan_id)
);
create index scan_attempts_site on scan_attempts (site_id, reported_at);
create index scan_attempts_server on scan_attempts (cluster_id, vm_id, address, reported_at);
create index scan_attempts_request on scan_attempts (request_id) where request_id is not null;
create index scan_attempts_reported_at on scan_attempts (reported_at);

-- Open ports of a server's address. The two profiles are kept apart (NET-2.7.10).
create table scan_observations (
  cluster_id bigint not null,
  vm_id bigint not null,
  address inet not null,
  profile text not null check (profile in ('common', 'full')),
  transport text not null check (transport in ('tcp', 'udp')),
  port integer not null check (port between 1 and 65535),
  site_id bigint not null references sites,
  sensor_id bigint not null references sensors,
  first_observed_at timestamptz not null,
  observed_at timestamptz not null,
  scan_id uuid not null,
  service text,
  product text,
  version text,
  extra_info text,
  method text not null check (method in ('probed', 'table')),
  confidence integer not null,
  tunnel text,
  cpe text[] not null,
  -- A complete scan of the same profile did not find it any more.
  closed_at timestamptz,
  primary key (cluster_id, vm_id, address, profile, transport, port)
);
create index scan_observations_site on scan_observations (site_id);
create index scan_observations_sensor on scan_observations (sensor_id);
create index scan_observations_observed_at on scan_observations (observed_at);
