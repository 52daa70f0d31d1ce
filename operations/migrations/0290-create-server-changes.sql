-- Changes of servers for monitors: that and when, never what or by whom. Written in the transaction that ends the work at the hypervisor.
create table server_changes (
  id uuid primary key default gen_random_uuid(),
  -- No foreign keys: they would lock the server's row in transactions that hold the lock of one of its network interfaces.
  cluster_id bigint not null,
  server_id bigint not null,
  kind text not null check (kind in ('firewall', 'network_attached', 'network_detached', 'rebooted', 'reset')),
  occurred_at timestamptz not null default svc_now(),
  -- In the list that monitors read. Given after the commit, to one reader at a time, so that a cursor passes no change that
  -- commits late; null until then.
  position bigint
);
create sequence server_change_positions owned by server_changes.position;
create unique index server_changes_position on server_changes (position);
create index server_changes_unnumbered on server_changes (occurred_at, id) where position is null;
create index server_changes_occurred_at on server_changes (occurred_at);
