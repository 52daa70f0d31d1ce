-- State of each delivery feed, for people (NET-2.9).
create table feed_states (
  feed text primary key,
  last_run_at timestamptz,
  last_success_at timestamptz,
  -- A fixed, safe description (NET-4.10).
  last_error text,
  last_counts jsonb not null default '{}',
  last_receipt_at timestamptz,
  -- Start of the newest minute that operations acknowledged; a replay never moves it back.
  latest_acknowledged_minute timestamptz
);

-- The last complete page-through of operations' allocation targets. `assigned_at` is echoed as it came, so it is text.
create table allocation_targets (
  allocation_id bigint primary key,
  billing_account_id bigint not null,
  virtual_machine_id bigint not null,
  cluster_id bigint not null,
  address inet not null,
  assigned_at text not null,
  -- False for what is not globally routable: it is counted and never sent (NET-2.3).
  is_supported boolean not null
);

-- How far each allocation generation has been delivered. `assigned_at` is part of the identity: a new owner of an
-- allocation id starts anew.
create table delivery_cursors (
  allocation_id bigint not null,
  assigned_at text not null,
  -- Every complete minute before this one was acknowledged or found empty once.
  delivered_until timestamptz not null,
  -- Where the repeated sweep of the last 24 hours goes on.
  swept_until timestamptz not null,
  last_visit_at timestamptz,
  last_outcome text,
  updated_at timestamptz not null default svc_now(),
  primary key (allocation_id, assigned_at)
);
create index delivery_cursors_updated_at on delivery_cursors (updated_at);
