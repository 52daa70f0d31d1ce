-- Connections of an hour by application and remote address, without the local one, for questions about neither servers nor devices:
-- servers share their applications, so these are fewer rows than `pair_hours`, and they are found by remote address.
create table pair_name_hours (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  -- The address that is not the local one; of transit the one that was connected to.
  peer inet not null,
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  packets bigint not null
) partition by range (hour);
create index pair_name_hours_site_hour on pair_name_hours (site_id, hour);
create index pair_name_hours_name on pair_name_hours (site_id, name, hour);
create index pair_name_hours_peer on pair_name_hours (site_id, peer, hour);

-- Hours of connections that are kept are made anew; until then they are read from minutes.
update rolled_hours set is_dirty = true, has_detail = false where hour > svc_now() - interval '25 hours';
