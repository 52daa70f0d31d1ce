-- The newest interfaces and neighbours that each sensor told with its minutes.
create table host_inventories (
  sensor_id bigint primary key references sensors,
  observed_at timestamptz not null,
  interfaces jsonb not null,
  interfaces_left_out integer not null,
  neighbours integer not null,
  neighbours_left_out integer not null
);

-- Frames that offload merged out of an unknown number of packets: where there are any, the minute's packets are too few.
alter table capture_minutes add column merged_frames bigint not null default 0;
