-- The last run of retention, for whoever asks how the monitor is. One row.
create table maintenance_state (
  is_only boolean primary key default true check (is_only),
  last_run_at timestamptz,
  last_success_at timestamptz,
  last_error text,
  last_counts jsonb not null default '{}',
  last_seconds float8
);
insert into maintenance_state default values;
