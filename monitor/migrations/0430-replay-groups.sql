-- Replays of a group's addresses against other thresholds: asked for on a page, done in the background, kept with their results.
create table protection_replays (
  id uuid primary key,
  site_id bigint not null references sites,
  -- The group as it was; it may be changed or removed since.
  group_id bigint not null,
  group_name text not null,
  -- What was asked about, on top of what the group had.
  asked jsonb not null,
  asked_at timestamptz not null default svc_now(),
  asked_by text not null,
  -- Null until a worker has listed them.
  addresses text[],
  done integer not null default 0,
  finished_at timestamptz,
  cancelled_by text,
  -- Why it ended without all addresses.
  failure text,
  claimed_until timestamptz,
  term bigint not null default 0,
  attempts integer not null default 0
);
create unique index protection_replays_one on protection_replays (site_id) where finished_at is null;
create index protection_replays_group on protection_replays (site_id, group_id, asked_at);
create index protection_replays_asked_at on protection_replays (asked_at);

create table protection_replay_addresses (
  replay_id uuid not null references protection_replays on delete cascade,
  address text not null,
  minutes integer not null,
  fired integer not null,
  certain integer not null,
  present integer not null,
  strongest jsonb,
  primary key (replay_id, address)
);
