-- What MACs sent from addresses that the inventory gives to others, by hour. It counts on no address. MAC and address are blank and
-- null in the row of what found no row of its own.
create table spoofed_traffic (
  sensor_id bigint not null references sensors,
  hour timestamptz not null,
  capture text not null,
  segment text not null,
  mac text not null,
  address inet,
  site_id bigint not null references sites,
  first_minute timestamptz not null,
  last_minute timestamptz not null,
  bytes bigint not null,
  packets bigint not null,
  unique nulls not distinct (sensor_id, hour, capture, segment, mac, address)
);
create index spoofed_traffic_site_id on spoofed_traffic (site_id, hour);
create index spoofed_traffic_hour on spoofed_traffic using brin (hour);
