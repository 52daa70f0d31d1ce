-- What an order needs is held before its card is charged, so that nothing can refuse it afterwards. `held` names the
-- server that the order will become: its id, its cluster, its price. Null for orders of earlier versions.
alter table server_orders add column held jsonb;

-- Public addresses of orders that are being paid. A row goes when it becomes an allocation, or with its order.
create table address_holds (
  cluster_id bigint not null references clusters (id),
  address inet not null,
  pool_id bigint not null references address_pools (id),
  server_id bigint not null,
  is_primary boolean not null,
  primary key (cluster_id, address)
);
create index address_holds_pool_id on address_holds (pool_id);
create index address_holds_server_id on address_holds (server_id);

-- The same for an address of a private network; the network can't be deleted meanwhile.
create table network_holds (
  network_id bigint not null references private_networks (id),
  ip inet not null check (family(ip) = 4 and masklen(ip) = 32),
  server_id bigint not null unique,
  primary key (network_id, ip)
);
