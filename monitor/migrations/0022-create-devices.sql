-- What was seen on a segment of a site: one row for each visible `segment|MAC`. The match is the last one that an
-- import confirmed (NET-2.1.2); it stays when the machine goes, and `match_ended_at` says since when it is history.
create table devices (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  segment text not null,
  mac text not null,
  manufacturer text,
  first_seen_at timestamptz not null,
  -- Start of the newest minute in which it was seen.
  last_seen_at timestamptz not null,
  matched_cluster_id bigint,
  matched_vm_id bigint,
  matched_vm_name text,
  matched_at timestamptz,
  match_ended_at timestamptz,
  archived_at timestamptz,
  unique (site_id, segment, mac)
);
create index devices_mac on devices (mac);
create index devices_match on devices (matched_cluster_id, matched_vm_id);

-- An operator's name belongs to the MAC, so every segment that shows it is renamed (NET-2.1.3).
create table device_names (
  mac text primary key,
  name text not null,
  named_by bigint references operators,
  named_at timestamptz not null default svc_now()
);
create index device_names_named_by on device_names (named_by);

-- Which addresses a device was seen to own. A released claim is history.
create table address_claims (
  device_id bigint not null references devices,
  address inet not null,
  site_id bigint not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  released_at timestamptz,
  primary key (device_id, address)
);
create index address_claims_address on address_claims (site_id, address) where released_at is null;

-- An address that different MACs claim at the same time.
create table ip_conflicts (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  address inet not null,
  opened_at timestamptz not null default svc_now(),
  resolved_at timestamptz
);
create unique index ip_conflicts_open on ip_conflicts (site_id, address) where resolved_at is null;
