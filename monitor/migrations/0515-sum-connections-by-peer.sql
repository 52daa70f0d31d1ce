-- Connections of an hour by remote address alone, for the few questions that need no more of them; and an index for those of one server.
create table pair_peer_hours (
  hour timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  -- The address that is not the local one; of transit the one that was connected to.
  peer inet not null,
  inbound_bytes numeric,
  outbound_bytes numeric,
  packets numeric
) partition by range (hour);
create index pair_peer_hours_site_hour on pair_peer_hours (site_id, hour);
create index pair_hours_local on pair_hours (site_id, local, hour);

-- Hours of connections that are kept are made anew; until then they are read from minutes.
update rolled_hours set is_dirty = true, has_detail = false where hour > svc_now() - interval '25 hours';
