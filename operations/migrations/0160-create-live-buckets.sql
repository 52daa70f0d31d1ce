-- Live traffic of the last hour. Unlogged: a crash loses it, and the monitor sends the last five minutes again.
-- One row for each generation that live traffic was delivered for: who sends it, and how its delivery stands.
create unlogged table protect_live_series (
  allocation_id bigint primary key references allocations (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  source_project_id bigint not null references admin_projects,
  source_site_id bigint not null,
  -- When a delivery last named it, of any source.
  attempted_at timestamptz not null default svc_now(),
  -- When buckets of it were last acknowledged, how many they were, and the newest that ever was.
  received_at timestamptz,
  received_buckets integer not null default 0,
  latest_at timestamptz
);
create index protect_live_series_tenant_id on protect_live_series (tenant_id);
create index protect_live_series_server_id on protect_live_series (server_id);
create index protect_live_series_source on protect_live_series (source_project_id);

-- Ten seconds of UTC. Null is unknown, and a bucket without a row was not observed: neither is ever zero.
create unlogged table protect_live_buckets (
  allocation_id bigint not null references protect_live_series on delete cascade,
  started_at timestamptz not null check (extract(epoch from started_at)::bigint % 10 = 0),
  inbound_bps double precision,
  outbound_bps double precision,
  pps double precision,
  coverage double precision,
  observed_seconds double precision not null,
  received_at timestamptz not null default svc_now(),
  primary key (allocation_id, started_at)
);
create index protect_live_buckets_started_at on protect_live_buckets using brin (started_at);
