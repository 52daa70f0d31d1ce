-- Hand-off: what the monitor does by itself against an attack, by rules that operators set.

-- What was done against an incident, for operations and the customer: [{kind, atMs, endedAtMs}].
alter table incidents add column actions jsonb not null default '[]';

create sequence hand_off_revisions;

create table hand_off_sites (
  site_id bigint primary key references sites,
  -- Addresses with an action at once; dry runs are counted apart.
  addresses_max integer not null check (addresses_max between 1 and 1000),
  revision bigint not null default nextval('hand_off_revisions'),
  changed_at timestamptz not null default svc_now(),
  changed_by text not null
);

create table hand_off_rules (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  name text not null,
  kind text not null check (kind in ('webhook', 'command', 'blackhole', 'flowspec')),
  mode text not null check (mode in ('off', 'dry_run', 'on')),
  -- Only addresses in these prefixes are acted on.
  prefixes text[] not null check (cardinality(prefixes) between 1 and 256),
  direction text not null check (direction in ('inbound', 'outbound', 'both')),
  -- The peak that an attack must reach: one of those that are set. None set: every attack.
  min_pps float8,
  min_bps float8,
  -- How long an action outlasts the recovery.
  hold_seconds integer not null check (hold_seconds between 60 and 86400),
  -- Where to, by kind: {url}, {command}, {peer, nextHop4, nextHop6}.
  target jsonb not null,
  -- Signs the deliveries of a webhook.
  sealed_secret bytea,
  clear_secret bytea check (clear_secret is null),
  revision bigint not null default nextval('hand_off_revisions'),
  changed_at timestamptz not null default svc_now(),
  changed_by text not null,
  -- A removed rule is kept for the end and the history of its actions.
  removed_at timestamptz
);
create unique index hand_off_rules_name on hand_off_rules (site_id, lower(name)) where removed_at is null;

create table hand_off_actions (
  id bigint generated always as identity primary key,
  -- The same in every attempt.
  public_id uuid not null default gen_random_uuid(),
  site_id bigint not null references sites,
  rule_id bigint not null references hand_off_rules,
  -- The incident that began it; others of the same address join it (hand_off_incidents).
  incident_id uuid references incidents on delete set null,
  kind text not null,
  is_dry_run boolean not null,
  address text not null,
  target_key text not null,
  -- As they were when the action was made: its end goes where its start went.
  target jsonb not null,
  hold_seconds integer not null,
  -- What receivers are told of the attack.
  attack jsonb not null,
  state text not null default 'waiting' check (state in ('waiting', 'active', 'ending', 'ended', 'failed')),
  created_at timestamptz not null default svc_now(),
  started_at timestamptz,
  -- Since when all of its incidents are over.
  released_at timestamptz,
  ended_at timestamptz,
  -- Who ended it by hand.
  stopped_by text,
  -- It counts among the addresses at once.
  has_room boolean not null default false,
  -- The start was tried and may have had an effect, so it is undone even if it seemed to fail.
  was_tried boolean not null default false,
  has_failed boolean not null default false,
  -- Of the present step.
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default svc_now(),
  output text not null default '',
  last_error text,
  term integer not null default 0,
  claimed_until timestamptz,
  check ((state in ('ended', 'failed')) = (ended_at is not null))
);
create unique index hand_off_actions_subject on hand_off_actions (rule_id, target_key) where state in ('waiting', 'active');
create index hand_off_actions_open on hand_off_actions (next_attempt_at) where ended_at is null;
create index hand_off_actions_site_id on hand_off_actions (site_id, id);
create index hand_off_actions_rule_id on hand_off_actions (rule_id, id);
create index hand_off_actions_incident_id on hand_off_actions (incident_id);
create index hand_off_actions_ended_at on hand_off_actions (ended_at);

-- The incidents that an action is for.
create table hand_off_incidents (
  action_id bigint not null references hand_off_actions on delete cascade,
  incident_id uuid not null references incidents on delete cascade,
  -- Since when it is over.
  left_at timestamptz,
  primary key (action_id, incident_id)
);
create index hand_off_incidents_incident_id on hand_off_incidents (incident_id);
