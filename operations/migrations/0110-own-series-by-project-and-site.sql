-- A source of minute telemetry is a site of an admin project: two monitors number their sites by themselves. Rows from
-- before have no project; the first delivery of their site claims them.
alter table protect_series
  add column source_project_id bigint references admin_projects,
  -- When the owner delivered last: after 15 minutes another source may take over.
  add column source_seen_at timestamptz not null default svc_now(),
  add column taken_over_at timestamptz,
  -- The source that was refused last, until it takes over.
  add column waiting_project_id bigint references admin_projects,
  add column waiting_site_id bigint,
  add column waiting_at timestamptz;
create index protect_series_source on protect_series (source_project_id, source_site_id);
create index protect_series_waiting on protect_series (waiting_project_id) where waiting_project_id is not null;

-- Minutes that were not stored because no link carries what they say. Kept as long as minutes.
create table protect_set_aside (
  allocation_id bigint not null references allocations (id),
  minute timestamptz not null,
  project_id bigint not null references admin_projects,
  source_site_id bigint not null,
  reason text not null,
  received_at timestamptz not null default svc_now(),
  primary key (allocation_id, minute)
);
create index protect_set_aside_project_id on protect_set_aside (project_id, received_at);
create index protect_set_aside_minute on protect_set_aside using brin (minute);
