-- What happened to customers' things, written in the transaction in which it happened; webhooks are sent out of it.
create table events (
  id bigint generated always as identity primary key,
  -- Names the event to receivers, who know by it what they have seen already.
  public_id text not null unique default ('msg_' || replace(gen_random_uuid()::text, '-', '')),
  type text not null check (type ~ '^[a-z]+\.[a-z_]+$'),
  organization_id bigint not null references organizations (id),
  -- null: about the organization as a whole.
  tenant_id bigint references tenants (id),
  data jsonb not null,
  occurred_at timestamptz not null default svc_now(),
  -- When its deliveries were decided on; null until then.
  dispatched_at timestamptz
);
create index events_organization_id on events (organization_id, id);
create index events_tenant_id on events (tenant_id);
create index events_undispatched on events (id) where dispatched_at is null;
create index events_occurred_at on events (occurred_at);
