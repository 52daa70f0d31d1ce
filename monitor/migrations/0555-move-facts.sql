-- Which engine holds the traffic facts. It is noted at the first start and changed by a move; a process that is set to another engine
-- neither starts nor writes facts.
create table fact_engine (
  is_only boolean primary key default true check (is_only),
  -- The number of the tables in ClickHouse, which hold it as well; null: PostgreSQL.
  store_id uuid,
  -- For messages, without a password.
  place text not null,
  since timestamptz not null default svc_now()
);

-- The move that is under way.
create table fact_moves (
  is_only boolean primary key default true check (is_only),
  to_store_id uuid,
  to_place text not null,
  began_at timestamptz not null default svc_now(),
  -- The last days are being copied, while uploads wait.
  is_holding boolean not null default false,
  -- Why the last run ended before the switch.
  fault text
);

-- Days of sites that were copied. A day that is not whole is copied again.
create table fact_move_days (
  site_id bigint not null references sites,
  day timestamptz not null,
  -- Minutes of captures, as the measure of progress.
  capture_minutes integer not null,
  -- Networks of peers of hours from this one on were made of exact pairs.
  peers_from timestamptz not null,
  is_whole boolean not null default false,
  primary key (site_id, day)
);

-- Days that changed since the move began, written in the transaction of the change. Rows are only ever added and removed by their
-- number, so that no change is lost between a copy and a mark.
create table fact_move_changes (
  id bigint generated always as identity primary key,
  site_id bigint not null,
  day timestamptz not null
);

create index fact_move_changes_day on fact_move_changes (site_id, day);

-- Uploads with a larger number than this one wait while the hold lasts.
create table inbox_holds (
  is_only boolean primary key default true check (is_only),
  id uuid not null,
  through bigint not null,
  expires_at timestamptz not null
);
