-- The machines of a cluster. Sizes are what may be given to guests, not what the machine has.
create table nodes (
  id bigint generated always as identity primary key,
  cluster_id bigint not null references clusters (id),
  name text not null,
  uri text,
  storage_pool text,
  bridge text,
  vcpus integer not null check (vcpus > 0),
  memory_mb integer not null check (memory_mb > 0),
  disk_gb integer not null check (disk_gb > 0),
  is_open boolean not null default true,
  seen_at timestamptz,
  last_error text,
  created_at timestamptz not null default svc_now(),
  unique (cluster_id, name)
);

-- The room that a server holds on a node, from its order until its guest is gone.
create table node_reservations (
  id bigint generated always as identity primary key,
  node_id bigint not null references nodes (id),
  server_id bigint not null,
  vcpus integer not null,
  memory_mb integer not null,
  disk_gb integer not null,
  reserved_at timestamptz not null default svc_now(),
  released_at timestamptz
);
create unique index node_reservations_held on node_reservations (server_id) where released_at is null;
create index node_reservations_server_id on node_reservations (server_id, id);
create index node_reservations_node_id on node_reservations (node_id) where released_at is null;

-- Clusters from before nodes were known get one node for each name that their servers were made on (one of the
-- cluster's own name where there are none). Its sizes are what is in use: nothing new fits until an operator, or the
-- next start of the demo world, says how much there is.
insert into nodes (cluster_id, name, vcpus, memory_mb, disk_gb)
select c.id, coalesce(s.node, c.name), greatest(1, coalesce(sum(p.vcpus), 0)),
  greatest(1, coalesce(sum(p.memory_mb), 0)), greatest(1, coalesce(sum(p.disk_gb), 0))
from clusters c
left join servers s on s.cluster_id = c.id and s.provisioning_state <> 'deleted'
left join plans p on p.id = s.plan_id
group by c.id, coalesce(s.node, c.name);

insert into node_reservations (node_id, server_id, vcpus, memory_mb, disk_gb)
select n.id, s.id, p.vcpus, p.memory_mb, p.disk_gb
from servers s join clusters c on c.id = s.cluster_id join plans p on p.id = s.plan_id
join nodes n on n.cluster_id = s.cluster_id and n.name = coalesce(s.node, c.name)
where s.provisioning_state <> 'deleted';
