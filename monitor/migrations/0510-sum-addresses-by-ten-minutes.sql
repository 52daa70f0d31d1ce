-- What local addresses exchanged with the outside in ten minutes, so that a day in steps of ten minutes is few rows. Of an address it
-- is one row for each owner and each capture that counted in one of the minutes.
create table address_tens (
  start timestamptz not null,
  site_id bigint not null,
  address inet not null,
  segment text not null,
  -- Blank: no known owner.
  device_key text not null,
  capture_id bigint not null,
  vantage smallint not null,
  rx_bytes bigint not null,
  tx_bytes bigint not null,
  packets bigint not null
) partition by range (start);
create index address_tens_site_start on address_tens (site_id, start);

-- Ten minutes that were made before have none of it; they are read from minutes until they are made anew.
alter table rolled_tens add column has_addresses boolean not null default false;
update rolled_tens set is_dirty = true where start > svc_now() - interval '24 hours';
