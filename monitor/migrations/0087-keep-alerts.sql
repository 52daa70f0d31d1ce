-- A trouble from its beginning to its end. The partial index lets no two episodes of one subject be open at once,
-- however many processes judge.
create table alert_episodes (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  kind text not null,
  -- What it is about, such as `sensor:4`; stays when the thing itself is gone.
  subject_key text not null,
  subject_name text not null,
  opened_at timestamptz not null default svc_now(),
  -- What was measured when it opened, and newest while it is open.
  details jsonb not null,
  -- Since when all has looked well; blank while it does not, or while nobody knows.
  good_since timestamptz,
  resolved_at timestamptz,
  resolution text check (resolution in ('recovered', 'removed')),
  acknowledged_at timestamptz,
  acknowledged_by text,
  note text,
  check ((resolved_at is null) = (resolution is null))
);
create unique index alert_episodes_open on alert_episodes (kind, subject_key) where resolved_at is null;
create index alert_episodes_site_id on alert_episodes (site_id, opened_at);
create index alert_episodes_resolved_at on alert_episodes (resolved_at);

-- Subjects that nobody wants to be told of for a while; their episodes go on.
create table alert_mutes (
  kind text not null,
  subject_key text not null,
  until timestamptz not null,
  muted_by text not null,
  primary key (kind, subject_key)
);

-- When episodes were judged last, and since when without a break: a monitor that was away has heard nobody.
create table alert_watch (
  is_only boolean primary key default true check (is_only),
  last_run_at timestamptz not null,
  watching_since timestamptz not null
);

create table alert_channels (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('email', 'webhook')),
  name text not null,
  recipients text[] not null default '{}',
  url text,
  -- Signs deliveries, so it can't be kept as a digest. Shown once, by no page again.
  secret bytea,
  is_enabled boolean not null default true,
  created_at timestamptz not null default svc_now(),
  consecutive_failures integer not null default 0,
  -- Who delivers to it now; `term` is the fence of all that is recorded.
  claimed_until timestamptz,
  term bigint not null default 0,
  check ((kind = 'webhook') = (url is not null and secret is not null)),
  check ((kind = 'email') = (cardinality(recipients) > 0))
);

-- The outbox, written in the transaction of the transition: one row for each transition and channel.
create table alert_notifications (
  id bigint generated always as identity primary key,
  public_id uuid not null unique default gen_random_uuid(),
  -- Without an episode: a test.
  episode_id bigint references alert_episodes on delete cascade,
  transition text not null check (transition in ('opened', 'resolved', 'test')),
  channel_id bigint not null references alert_channels on delete cascade,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default svc_now(),
  created_at timestamptz not null default svc_now(),
  finished_at timestamptz,
  -- Words of ours: what a receiver says is never stored.
  last_error text,
  unique (episode_id, transition, channel_id)
);
create index alert_notifications_channel_id on alert_notifications (channel_id, id);
create index alert_notifications_due on alert_notifications (next_attempt_at) where status = 'pending';
