-- Where customers want to be told, what is to be delivered there, and what became of each attempt.
create table webhook_endpoints (
  id bigint generated always as identity primary key,
  organization_id bigint not null references organizations (id),
  -- null: events of every workspace, and of the organization itself.
  tenant_id bigint references tenants (id),
  url text not null,
  description text not null,
  event_types text[] not null check (cardinality(event_types) > 0),
  -- Signs deliveries, so it can't be kept as a digest. No page and no answer shows it again.
  secret bytea not null check (length(secret) between 24 and 64),
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null default svc_now(),
  disabled_at timestamptz,
  disabled_reason text check (disabled_reason in ('gone', 'owner')),
  consecutive_failures integer not null default 0,
  failing_since timestamptz,
  -- Who delivers to it now; `term` is the fence of everything that is recorded.
  claimed_until timestamptz,
  term bigint not null default 0
);
create index webhook_endpoints_organization_id on webhook_endpoints (organization_id);
create index webhook_endpoints_tenant_id on webhook_endpoints (tenant_id);

create table webhook_deliveries (
  id bigint generated always as identity primary key,
  endpoint_id bigint not null references webhook_endpoints (id) on delete cascade,
  event_id bigint not null references events (id) on delete cascade,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'cancelled')),
  attempts integer not null default 0,
  -- Where it stands in the schedule; a replay starts at 0 again.
  step integer not null default 0,
  next_attempt_at timestamptz not null default svc_now(),
  created_at timestamptz not null default svc_now(),
  finished_at timestamptz,
  unique (endpoint_id, event_id)
);
create index webhook_deliveries_event_id on webhook_deliveries (event_id);
create index webhook_deliveries_due on webhook_deliveries (next_attempt_at, id) where status = 'pending';

create table webhook_attempts (
  delivery_id bigint not null references webhook_deliveries (id) on delete cascade,
  number integer not null,
  at timestamptz not null default svc_now(),
  duration_ms integer not null,
  -- null where no answer came.
  status_code integer,
  -- Words of ours: what a receiver says is never stored.
  error text,
  primary key (delivery_id, number)
);
