-- The state of an address's record at the DNS server. The name itself is on the allocation: it ends with the generation, and then
-- the record is removed. The version lets an address that changes twice meanwhile end with the newest name.
create table reverse_dns_writes (
  cluster_id bigint not null references clusters (id),
  address inet not null,
  version integer not null default 1,
  status text not null default 'pending' check (status in ('pending', 'applied', 'failed')),
  changed_at timestamptz not null default svc_now(),
  primary key (cluster_id, address)
);
