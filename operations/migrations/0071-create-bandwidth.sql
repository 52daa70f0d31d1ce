-- The newest running totals of a server's public cards, one row for each boot: a total that is smaller than the one
-- before it comes from a guest that was started anew. A reading that arrives twice adds nothing.
create table bandwidth_readings (
  server_id bigint not null references servers (id),
  boot integer not null,
  inbound_total bigint not null check (inbound_total >= 0),
  outbound_total bigint not null check (outbound_total >= 0),
  read_at timestamptz not null,
  primary key (server_id, boot)
);

-- What a server has used on each UTC day, by where that is known from. Two sources of one day are never added up. Rows
-- outlive their server: the account used it.
create table bandwidth_days (
  server_id bigint not null references servers (id),
  day date not null,
  source text not null check (source in ('hypervisor', 'telemetry')),
  tenant_id bigint not null references tenants (id),
  inbound_bytes bigint not null check (inbound_bytes >= 0),
  outbound_bytes bigint not null check (outbound_bytes >= 0),
  last_sampled_at timestamptz not null,
  primary key (server_id, day, source)
);
create index bandwidth_days_tenant_id on bandwidth_days (tenant_id, day);
