-- The last check of each node: what it needs to run servers, and how that is.
create table node_checks (
  node_id bigint primary key references nodes (id) on delete cascade,
  asked_at timestamptz not null default svc_now(),
  -- Null while it is under way.
  finished_at timestamptz,
  results jsonb not null default '[]'
);
