-- Counters of an address and minute that were left out of an upload, because they can't be true. The address is unknown in
-- that minute, never zero.
create table set_aside_hosts (
  site_id bigint not null references sites,
  sensor_id bigint not null references sensors,
  address inet not null,
  minute timestamptz not null,
  capture text not null,
  noted_at timestamptz not null default svc_now(),
  primary key (site_id, address, minute, sensor_id, capture)
);
create index set_aside_hosts_sensor_id on set_aside_hosts (sensor_id, minute);
create index set_aside_hosts_minute on set_aside_hosts using brin (minute);
