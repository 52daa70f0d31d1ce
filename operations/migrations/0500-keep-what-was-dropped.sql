-- What filters at hypervisors dropped of a minute, beside its bytes; null for nothing. Minutes of before, and those of an older monitor, have
-- none.
alter table protect_minutes add column dropped_inbound_bytes bigint, add column dropped_outbound_bytes bigint,
  add column dropped_inbound_packets bigint, add column dropped_outbound_packets bigint;
