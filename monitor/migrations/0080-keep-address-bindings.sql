-- Who owned an address when. A row is one unbroken time: it grows with every sighting and ends by silence, by another
-- owner or with the archive of its device; the one without an end is the device's live claim to the address.
create table ip_bindings (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  device_id bigint not null references devices,
  -- As in the device, so that owners of an address are compared without a look at it.
  mac text not null,
  address inet not null,
  -- Starts of the first and of the newest minute; the newest is written every five minutes while nobody else claims.
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  ended_at timestamptz,
  -- By silence, by another owner, or by the archive of the device; a sighting of its own time still adds to it.
  ended_by text check (ended_by in ('silence', 'owner', 'archive')),
  check ((ended_at is null) = (ended_by is null))
) with (fillfactor = 80);
create unique index ip_bindings_live on ip_bindings (device_id, address) where ended_at is null;
create index ip_bindings_address on ip_bindings (site_id, address);
create index ip_bindings_device_id on ip_bindings (device_id, address);
-- For retention alone: rows that are old grow no more, so pages hold rows of one time.
create index ip_bindings_last_seen_at on ip_bindings using brin (last_seen_at);

insert into ip_bindings (site_id, device_id, mac, address, first_seen_at, last_seen_at, ended_at, ended_by)
  select c.site_id, c.device_id, d.mac, c.address, c.first_seen_at, c.last_seen_at, c.released_at,
    case when c.released_at is not null then 'archive' end
  from address_claims c join devices d on d.id = c.device_id;
drop table address_claims;

-- The end of the device's last machine; kept when newer traffic brings the device back, because what was seen before it
-- stays history in whatever order it arrives.
alter table devices add column released_at timestamptz;
update devices set released_at = archived_at;
alter table devices set (fillfactor = 80);

-- Everybody who claimed the address while the conflict was open.
alter table ip_conflicts add column macs text[] not null default '{}';
-- MACs that own no address whatever they send: those of the sensors' hosts, of routers, and of who speaks for more
-- addresses than a host has (NET-2.2.9).
create table foreign_macs (
  site_id bigint not null references sites,
  mac text not null,
  reason text not null check (reason in ('sensor', 'router', 'many_addresses')),
  seen_at timestamptz not null default svc_now(),
  primary key (site_id, mac)
);

-- When the last machine with a MAC ended at a site, for devices that were not yet known then: what was seen of them
-- before is history from the start.
create table retired_macs (
  site_id bigint not null references sites,
  mac text not null,
  retired_at timestamptz not null,
  primary key (site_id, mac)
);
insert into retired_macs (site_id, mac, retired_at)
  select site_id, mac, max(archived_at) from devices where archived_at is not null group by site_id, mac;
