-- Scans that were asked for. One row is one address; its id becomes the id of the scan (NET-2.7.2).
create table scan_requests (
  id uuid primary key default gen_random_uuid(),
  -- manual: a customer's; automatic: for a new allocation.
  kind text not null check (kind in ('manual', 'automatic')),
  allocation_id bigint not null references allocations (id),
  cluster_id bigint not null references clusters (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  -- operations/protect/scans/transitions.ts has what moves it.
  state text not null default 'queued'
    check (state in ('queued', 'running', 'complete', 'partial', 'expired', 'cancelled')),
  requested_at timestamptz not null default svc_now(),
  -- A request that was not started by then expires.
  expires_at timestamptz not null default svc_now() + interval '24 hours',
  -- The source that claimed it: a site of an admin project. Another one takes over after 15 minutes of silence.
  project_id bigint references admin_projects,
  source_site_id bigint,
  source_seen_at timestamptz,
  claimed_at timestamptz,
  -- The sensor's own times.
  started_at timestamptz,
  heartbeat_at timestamptz,
  -- Percent.
  progress double precision,
  -- When it reached its last state.
  finished_at timestamptz,
  check ((state in ('queued', 'running')) = (finished_at is null))
);
-- A device has one pending request for each address, however many clicks and processes there are.
create unique index scan_requests_pending on scan_requests (allocation_id) where state in ('queued', 'running');
create index scan_requests_allocation_id on scan_requests (allocation_id);
create index scan_requests_cluster_id on scan_requests (cluster_id);
create index scan_requests_tenant_id on scan_requests (tenant_id);
create index scan_requests_server_id on scan_requests (server_id, requested_at desc);
create index scan_requests_project_id on scan_requests (project_id);
create index scan_requests_finished_at on scan_requests (finished_at);

-- Admin projects that fetch scan requests. A change of the clusters makes a new revision, under which requests are confirmed
-- anew (NET-2.7.9).
create sequence scan_connection_revisions;
create table scan_connections (
  project_id bigint primary key references admin_projects,
  -- null: all.
  cluster_ids bigint[],
  revision bigint not null default nextval('scan_connection_revisions'),
  fetched_at timestamptz not null default svc_now()
);

-- One row for each generation that results were delivered for: who delivers, and what was scanned as a whole.
create table port_scan_series (
  allocation_id bigint primary key references allocations (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  project_id bigint not null references admin_projects,
  source_site_id bigint not null,
  received_at timestamptz not null default svc_now(),
  -- Start of the newest complete scan of a profile that asked all its ports of a transport.
  common_tcp_at timestamptz,
  common_udp_at timestamptz,
  full_tcp_at timestamptz,
  full_udp_at timestamptz
);
create index port_scan_series_tenant_id on port_scan_series (tenant_id);
create index port_scan_series_server_id on port_scan_series (server_id);
create index port_scan_series_project_id on port_scan_series (project_id);

-- Results, each once. A requested scan keeps what it found, apart from the newest observation of each port.
create table port_scans (
  scan_id uuid primary key,
  request_id uuid,
  kind text not null check (kind in ('manual', 'automatic', 'routine')),
  allocation_id bigint not null references port_scan_series on delete cascade,
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  profile text not null check (profile in ('common', 'full')),
  state text not null check (state in ('complete', 'partial')),
  started_at timestamptz not null,
  finished_at timestamptz not null,
  -- [{transport, ports_asked, ports_answered, filtered, silent, finished}]
  phases jsonb not null,
  notes text[] not null,
  ports_open integer not null,
  -- Of a requested scan, as delivered; null for routine scans.
  services jsonb,
  received_at timestamptz not null default svc_now()
);
create index port_scans_allocation_id on port_scans (allocation_id, finished_at desc);
create index port_scans_tenant_id on port_scans (tenant_id);
create index port_scans_server_id on port_scans (server_id, finished_at desc);
create index port_scans_request_id on port_scans (request_id);
create index port_scans_finished_at on port_scans (finished_at);

-- What is known of a port. Evidence of common scans and of full scans stand beside each other (NET-2.7.10).
create table port_observations (
  allocation_id bigint not null references port_scan_series on delete cascade,
  transport text not null check (transport in ('tcp', 'udp')),
  port integer not null check (port between 1 and 65535),
  -- Of the present time of being open, or the last one.
  first_observed_at timestamptz not null,
  -- End of the scan that asked for the port and did not find it open; null while it is open.
  closed_at timestamptz,
  common_observed_at timestamptz,
  common_scan_id uuid,
  -- {service, product, version, extra_info, method, confidence, tunnel, cpe}
  common_service jsonb,
  full_observed_at timestamptz,
  full_scan_id uuid,
  full_service jsonb,
  newest_at timestamptz not null generated always as (greatest(common_observed_at, full_observed_at)) stored,
  primary key (allocation_id, transport, port)
);
create index port_observations_newest_at on port_observations (newest_at);
