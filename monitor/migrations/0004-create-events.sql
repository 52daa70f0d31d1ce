-- What happened, for people to read. `details` holds facts, never secrets.
create table events (
  id bigint generated always as identity primary key,
  kind text not null,
  site_id bigint references sites,
  sensor_id bigint references sensors,
  occurred_at timestamptz not null default svc_now(),
  details jsonb not null default '{}'
);
create index events_site_id on events (site_id, occurred_at desc);
create index events_sensor_id on events (sensor_id);
create index events_occurred_at on events (occurred_at);
