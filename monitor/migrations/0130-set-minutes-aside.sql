-- Minutes that are not sent to operations, because no link carries what they say or because operations named them in a
-- refusal. The fingerprint is of the point as it was: when its content changes it is sent again.
create table delivery_set_aside (
  allocation_id bigint not null,
  assigned_at text not null,
  minute timestamptz not null,
  reason text not null,
  fingerprint text not null,
  noted_at timestamptz not null default svc_now(),
  primary key (allocation_id, assigned_at, minute)
);
create index delivery_set_aside_noted_at on delivery_set_aside (noted_at);
