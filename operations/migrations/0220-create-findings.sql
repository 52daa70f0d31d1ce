-- One row for each generation that potential vulnerabilities were delivered for: who delivers, and the newest check.
create table finding_projections (
  allocation_id bigint primary key references allocations (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  project_id bigint not null references admin_projects,
  source_site_id bigint not null,
  received_at timestamptz not null default svc_now(),
  -- The newest scan of the address that the check knew. Null, and -infinity, only until the first check is stored.
  scan_id uuid,
  checked_at timestamptz not null default '-infinity',
  -- Age of the records that were compared.
  database_at timestamptz,
  -- Findings that the monitor left out.
  truncated bigint not null default 0
);
create index finding_projections_tenant_id on finding_projections (tenant_id);
create index finding_projections_server_id on finding_projections (server_id);
create index finding_projections_project_id on finding_projections (project_id);
create index finding_projections_checked_at on finding_projections (checked_at);

-- Services of the newest check, each with the evidence that was assessed.
create table finding_services (
  allocation_id bigint not null references finding_projections on delete cascade,
  transport text not null check (transport in ('tcp', 'udp')),
  port integer not null check (port between 1 and 65535),
  scan_id uuid not null,
  observed_at timestamptz not null,
  -- SHA-256 of what identifies the software, its version among it.
  fingerprint text not null,
  product text,
  version text,
  -- Null: assessed. Otherwise why it can't be.
  reason text,
  primary key (allocation_id, transport, port)
);
create index finding_services_observed_at on finding_services (observed_at);

-- Potential vulnerabilities of these services.
create table findings (
  allocation_id bigint not null,
  transport text not null,
  port integer not null,
  cve_id text not null,
  fingerprint text not null,
  -- Of the original of a package, whose own state is unknown: shown apart, never counted and never told.
  is_upstream boolean not null,
  severity text check (severity in ('none', 'low', 'medium', 'high', 'critical')),
  score double precision,
  cvss_version text,
  cvss_vector text,
  summary text not null,
  published_at timestamptz not null,
  modified_at timestamptz not null,
  -- platform: what scans don't see decides; bounded: the record or the version is not exact enough.
  incomplete text check (incomplete in ('platform', 'bounded')),
  is_disputed boolean not null,
  is_known_exploited boolean not null,
  primary key (allocation_id, transport, port, cve_id),
  foreign key (allocation_id, transport, port) references finding_services on delete cascade
);

-- What a server was found to have, once for each version: since when, and the highest severity that was considered for an
-- alert (0 to 4, as in the list of severities). It outlives the findings, so that nothing is told twice.
create table known_findings (
  server_id bigint not null references servers (id),
  tenant_id bigint not null references tenants (id),
  transport text not null,
  port integer not null,
  fingerprint text not null,
  cve_id text not null,
  first_at timestamptz not null default svc_now(),
  severity_rank integer not null,
  primary key (server_id, transport, port, fingerprint, cve_id)
);
create index known_findings_tenant_id on known_findings (tenant_id);
create index known_findings_first_at on known_findings (first_at);

-- What customers chose not to be shown as active: of one generation, port, version and CVE (NET-2.6.5).
create table finding_ignores (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  allocation_id bigint not null references allocations (id),
  transport text not null check (transport in ('tcp', 'udp')),
  port integer not null,
  fingerprint text not null,
  cve_id text not null,
  reason text not null,
  person_id bigint references people,
  is_by_key boolean not null default false,
  created_at timestamptz not null default svc_now(),
  -- Null: until it is ended.
  until timestamptz,
  ended_at timestamptz
);
create unique index finding_ignores_open on finding_ignores (allocation_id, transport, port, fingerprint, cve_id)
  where ended_at is null;
create index finding_ignores_tenant_id on finding_ignores (tenant_id);
create index finding_ignores_server_id on finding_ignores (server_id);
create index finding_ignores_allocation_id on finding_ignores (allocation_id);
create index finding_ignores_person_id on finding_ignores (person_id);
