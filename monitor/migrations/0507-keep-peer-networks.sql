-- What a local address exchanged with networks of the Internet, by the hour: a /24 of IPv4 or a /48 of IPv6, so neither the remote
-- address nor the service. It is made of exact pairs while an hour has all of them, and stays when they are removed.
create table peer_network_hours (
  hour timestamptz not null,
  site_id bigint not null,
  -- 1: the local address opened the connections, 2: the network did.
  direction smallint not null,
  local inet not null,
  segment text not null,
  network cidr not null,
  inbound_bytes numeric not null,
  outbound_bytes numeric not null,
  packets numeric not null,
  -- Minutes of the hour with traffic; bit 0 is the first.
  minutes bigint not null,
  -- Made of the table below; such rows are made anew with their hour, the others only while it has its pairs.
  is_late boolean not null
) partition by range (hour);
create index peer_network_hours_site_hour on peer_network_hours (site_id, hour);
create index peer_network_hours_local on peer_network_hours (site_id, local, hour);
create index peer_network_hours_network on peer_network_hours (site_id, network, hour);

-- The same of a capture's minute that arrived when its pairs were no longer kept, as from a sensor that was offline for a day.
create table late_peer_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  capture_id bigint not null,
  vantage smallint not null,
  direction smallint not null,
  local inet not null,
  segment text not null,
  -- First address of the network.
  peer inet not null,
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  packets bigint not null,
  is_foreign boolean not null
) partition by range (minute);
create index late_peer_minutes_site_minute on late_peer_minutes (site_id, minute);

-- Hours that still have all of their pairs get their networks.
update rolled_hours set is_dirty = true where hour > svc_now() - interval '24 hours';
