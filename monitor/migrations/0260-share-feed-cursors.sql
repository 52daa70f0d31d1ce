-- Cursors and parts set aside of every feed in one table each; until now they were the minute feed's alone. Its rows stay:
-- an item of it is an allocation generation, written as its id and its assignment.
create table feed_cursors (
  feed text not null,
  -- Names the item for good: a new owner of an id is another item.
  item text not null,
  -- Where the delivery of the item stands, as its feed writes it; null before its first visit that sent something.
  position jsonb,
  last_visit_at timestamptz,
  last_outcome text,
  updated_at timestamptz not null default svc_now(),
  primary key (feed, item)
);
create index feed_cursors_updated_at on feed_cursors (updated_at);
insert into feed_cursors (feed, item, position, last_visit_at, last_outcome, updated_at)
select 'telemetry', allocation_id || ' ' || assigned_at,
  jsonb_build_object('deliveredUntil', extract(epoch from delivered_until)::bigint,
    'sweptUntil', extract(epoch from swept_until)::bigint),
  last_visit_at, last_outcome, updated_at
from delivery_cursors;
drop table delivery_cursors;

create table feed_set_aside (
  feed text not null,
  item text not null,
  -- Which part of the item, as its feed numbers them: of the minute feed the minute's start in seconds since 1970.
  part bigint not null,
  reason text not null,
  -- Of the part as it was: when its content changes it is sent again.
  fingerprint text not null,
  noted_at timestamptz not null default svc_now(),
  primary key (feed, item, part)
);
create index feed_set_aside_noted_at on feed_set_aside (noted_at);
insert into feed_set_aside (feed, item, part, reason, fingerprint, noted_at)
select 'telemetry', allocation_id || ' ' || assigned_at, extract(epoch from minute)::bigint, reason, fingerprint, noted_at
from delivery_set_aside;
drop table delivery_set_aside;

-- Not every feed sends minutes.
alter table feed_states rename column latest_acknowledged_minute to latest_acknowledged_at;
