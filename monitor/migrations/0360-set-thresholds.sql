-- Thresholds of attack detection that operators set. `thresholds` has a member for each direction with the metrics that are
-- set: a rate, or null for "not judged"; a metric that is missing has the value of the level above. `revision` is what a
-- form was filled in with, so that it never undoes a change that its reader had not seen. A sequence never gives an entry
-- that was removed and added again the revision that it had.
create sequence protection_revisions;
create table protection_sites (
  site_id bigint primary key references sites,
  thresholds jsonb not null default '{}',
  -- Protected beside the targets; independent of sites.local_cidrs (NET-2.2.8).
  additional_cidrs text[] not null default '{}' check (cardinality(additional_cidrs) <= 128),
  revision bigint not null default nextval('protection_revisions'),
  changed_at timestamptz not null default svc_now(),
  changed_by text not null
);

-- Addresses with thresholds of their own. Of overlapping groups the longest prefix counts.
create table protection_groups (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  name text not null,
  prefixes text[] not null check (cardinality(prefixes) between 1 and 256),
  thresholds jsonb not null,
  revision bigint not null default nextval('protection_revisions'),
  changed_at timestamptz not null default svc_now(),
  changed_by text not null
);
create unique index protection_groups_name on protection_groups (site_id, lower(name));

-- One server with all its addresses, or one address of any server.
create table protection_servers (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  cluster_id bigint,
  vm_id bigint,
  address inet,
  thresholds jsonb not null,
  revision bigint not null default nextval('protection_revisions'),
  changed_at timestamptz not null default svc_now(),
  changed_by text not null,
  check ((cluster_id is null) = (vm_id is null) and (address is null) <> (vm_id is null))
);
create unique index protection_servers_server on protection_servers (site_id, cluster_id, vm_id) where vm_id is not null;
create unique index protection_servers_address on protection_servers (site_id, address) where address is not null;
