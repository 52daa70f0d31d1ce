-- What nodes hold beside what is sold, from its first sight until a look finds it gone.
create table guest_drifts (
  node_id bigint not null references nodes (id) on delete cascade,
  guest text not null,
  kind text not null check (kind in ('missing', 'stray', 'size', 'interfaces')),
  detail text not null,
  seen_at timestamptz not null default svc_now(),
  primary key (node_id, guest, kind)
);
