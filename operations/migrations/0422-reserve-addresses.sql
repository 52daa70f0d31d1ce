-- Addresses that an account keeps. While a server has one, it is allocated to the server like any other; the row outlives the
-- allocation, so that the next server has a generation of its own.
create table reserved_addresses (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  pool_id bigint not null references address_pools (id),
  cluster_id bigint not null references clusters (id),
  address inet not null check (masklen(address) = case family(address) when 4 then 32 else 128 end),
  name text not null,
  -- The server that has it.
  server_id bigint references servers (id),
  state text not null check (state in ('available', 'attaching', 'attached', 'detaching')),
  -- The server was deployed with it, so it may be released while the server has it.
  came_with_server boolean not null default false,
  created_at timestamptz not null default svc_now(),
  updated_at timestamptz not null default svc_now(),
  check ((server_id is null) = (state = 'available')),
  unique (cluster_id, address)
);
create index reserved_addresses_tenant_id on reserved_addresses (tenant_id);
create index reserved_addresses_pool_id on reserved_addresses (pool_id, address);
create index reserved_addresses_server_id on reserved_addresses (server_id) where server_id is not null;

-- The code has the closed list of commands.
alter table server_actions drop constraint server_actions_command_check;
alter table server_actions add constraint server_actions_command_check check (command ~ '^[a-z]+(_[a-z]+)*$');
