-- Attacks on and from servers. An incident keeps the allocation generation that it was matched with first (NET-3.2).
-- Times are the sensor's own.
create table protect_incidents (
  incident_id uuid primary key,
  -- The source: a site of an admin project. Another one takes over when this one has been silent for 15 minutes.
  project_id bigint not null references admin_projects,
  source_site_id bigint not null,
  source_seen_at timestamptz not null default svc_now(),
  allocation_id bigint not null references allocations (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  revision bigint not null check (revision > 0),
  direction text not null check (direction in ('inbound', 'outbound')),
  class text not null,
  severity text not null check (severity in ('attack', 'info')),
  -- [{class, packets_share, bytes_share, ports}], the strongest first.
  vectors jsonb not null,
  state text not null check (state in ('active', 'stale', 'recovered')),
  started_at timestamptz not null,
  detected_at timestamptz not null,
  last_observed_at timestamptz not null,
  recovered_at timestamptz,
  -- Null while it is unknown.
  current_bps double precision,
  current_pps double precision,
  peak_bps double precision not null,
  peak_bps_at timestamptz not null,
  peak_pps double precision not null,
  peak_pps_at timestamptz not null,
  total_bytes bigint not null,
  total_packets bigint not null,
  coverage text not null check (coverage in ('complete', 'partial', 'unknown')),
  is_drill boolean not null,
  -- [{kind, at, ended_at}], as the monitor says.
  actions jsonb not null,
  received_at timestamptz not null default svc_now(),
  changed_at timestamptz not null default svc_now(),
  check ((state = 'recovered') = (recovered_at is not null))
);
create index protect_incidents_server_id on protect_incidents (server_id, started_at desc, incident_id desc);
create index protect_incidents_started_at on protect_incidents (started_at desc, incident_id desc);
create index protect_incidents_open on protect_incidents (server_id) where state <> 'recovered';
create index protect_incidents_allocation_id on protect_incidents (allocation_id, source_seen_at);
create index protect_incidents_tenant_id on protect_incidents (tenant_id);
create index protect_incidents_project_id on protect_incidents (project_id);
create index protect_incidents_last_observed_at on protect_incidents (last_observed_at);

-- Incidents that were not applied, with their last outcome: for operators, who look for a missing mapping.
create table protect_incident_refusals (
  project_id bigint not null references admin_projects,
  source_site_id bigint not null,
  incident_id uuid not null,
  outcome text not null check (outcome in ('unmatched', 'identity_conflict', 'terminal')),
  revision bigint not null,
  target_kind text not null,
  target text not null,
  class text not null,
  refused_at timestamptz not null default svc_now(),
  primary key (project_id, source_site_id, incident_id)
);
create index protect_incident_refusals_refused_at on protect_incident_refusals (refused_at);

-- Generations of an address at a time, ended ones too.
create index allocations_address_history on allocations (address, assigned_at);
