-- Usage and connections of ten minutes by local address, as captures count them: what queries read of an hour that is not summed yet.
-- When it is, these rows are deleted.
create table usage_tens (
  start timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  -- 0.0.0.0: traffic between two foreign addresses.
  local inet not null,
  segment text not null,
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  packets bigint not null
) partition by range (start);
create index usage_tens_local on usage_tens (site_id, local, start);

create table pair_tens (
  start timestamptz not null,
  site_id bigint not null,
  direction smallint not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  local inet not null,
  segment text not null,
  -- The address that is not the local one; of transit the one that was connected to.
  peer inet not null,
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  packets bigint not null
) partition by range (start);
create index pair_tens_local on pair_tens (site_id, local, start);

-- Ten minutes that were made before have none of it; they are read from minutes until their hour is summed.
alter table rolled_tens add column has_usage boolean not null default false;
