-- Ranges that a cluster gives addresses out of.
create table address_pools (
  id bigint generated always as identity primary key,
  cluster_id bigint not null references clusters (id),
  prefix cidr not null,
  gateway inet not null,
  first_address inet not null,
  last_address inet not null,
  check (first_address <= last_address),
  unique (cluster_id, prefix)
);

-- One row for each time that an address is given to a server: a generation. It ends with `released_at` and is never
-- used again; the next owner of the same address gets a row of its own. The index forbids two owners at a time.
create table allocations (
  id bigint generated always as identity primary key,
  pool_id bigint not null references address_pools (id),
  cluster_id bigint not null references clusters (id),
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address inet not null check (masklen(address) = case family(address) when 4 then 32 else 128 end),
  prefix_length integer not null,
  gateway inet not null,
  reverse_dns text,
  is_primary boolean not null,
  assigned_at timestamptz not null default svc_now(),
  released_at timestamptz
);
create unique index allocations_address on allocations (cluster_id, address) where released_at is null;
create index allocations_server_id on allocations (server_id);
create index allocations_tenant_id on allocations (tenant_id);
create index allocations_pool_id on allocations (pool_id, address);
create index allocations_active on allocations (id) where released_at is null;
