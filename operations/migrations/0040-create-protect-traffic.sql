-- The observed traffic of an allocation: one row for each generation that anything was observed of. The source site
-- that delivered first owns it, so that two monitors never add up.
create table protect_series (
  allocation_id bigint primary key references allocations (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  source_site_id bigint not null,
  created_at timestamptz not null default svc_now()
);
create index protect_series_tenant_id on protect_series (tenant_id);
create index protect_series_server_id on protect_series (server_id);

-- One UTC minute. Rates are kept as they came; bytes are what the rates say, as whole numbers. Null is "not observed",
-- and a minute without a row is a gap: neither is ever zero.
create table protect_minutes (
  allocation_id bigint not null references protect_series (allocation_id),
  minute timestamptz not null check (extract(epoch from minute)::bigint % 60 = 0 and date_trunc('minute', minute) = minute),
  inbound_bytes bigint,
  outbound_bytes bigint,
  inbound_bps double precision,
  outbound_bps double precision,
  pps double precision,
  expected_bps double precision,
  expected_pps double precision,
  ddos_bps double precision,
  ddos_pps double precision,
  coverage double precision,
  -- [{name, transport, server_port, inbound_bytes, outbound_bytes}], as observed in this very minute.
  applications jsonb not null,
  received_at timestamptz not null default svc_now(),
  primary key (allocation_id, minute)
);
create index protect_minutes_minute on protect_minutes using brin (minute);
