-- A site is a place with sensors. `local_cidrs` decide which endpoint of a connection is local, nothing else (NET-2.2.8).
create table sites (
  id bigint generated always as identity primary key,
  name text not null,
  local_cidrs text[] not null default '{}' check (cardinality(local_cidrs) <= 128),
  created_at timestamptz not null default svc_now()
);
create unique index sites_name on sites (lower(name));

-- Only an explicitly mapped cluster of operations selects a site (NET-2.3); a cluster has one site, a site may have many.
create table site_clusters (
  cluster_id bigint primary key,
  site_id bigint not null references sites,
  mapped_at timestamptz not null default svc_now()
);
create index site_clusters_site_id on site_clusters (site_id);
