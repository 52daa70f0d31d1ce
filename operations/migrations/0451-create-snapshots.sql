-- Copies of the disks of servers. A row that is `deleting` is no snapshot of its customer any more, or never was complete: its copy
-- is removed as soon as the disk of the server does not need it.
create table server_snapshots (
  id bigint generated always as identity primary key,
  server_id bigint not null references servers (id),
  -- The action that makes it.
  action_id bigint not null references server_actions (id),
  image_id bigint not null references images (id),
  name text not null,
  state text not null check (state in ('creating', 'ready', 'deleting')),
  -- Of the server at that time.
  disk_gb integer not null,
  -- What it takes at the node, from when its copy is complete.
  size_bytes bigint,
  created_at timestamptz not null default svc_now()
);
create index server_snapshots_server_id on server_snapshots (server_id, id);
