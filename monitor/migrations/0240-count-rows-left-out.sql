-- How many rows of each sensor were left out, because no link carries what they say or no packets hold it, and when last.
create table sensor_set_asides (
  sensor_id bigint primary key references sensors,
  minute_rows bigint not null,
  live_rows bigint not null,
  last_at timestamptz not null default svc_now()
);
