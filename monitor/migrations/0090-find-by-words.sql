-- Search by the beginnings of words, with what every PostgreSQL has: no extension has to be installed. Names are cut at
-- whatever is neither letter nor digit, so "db" finds "prod-db-3" and "exam" finds "www.example.net".
create function search_words(name text) returns tsvector language sql immutable strict parallel safe as $$
  select array_to_tsvector(array_remove(regexp_split_to_array(lower(name), '[[:space:][:punct:]]+'), ''))
$$;
create index device_names_words on device_names using gin (search_words(name));
create index inventory_vms_words on inventory_vms using gin (search_words(name));
create index inventory_vms_vm_id on inventory_vms (vm_id);
-- Prefixes of a MAC, whatever order the database's collation has.
create index devices_mac_prefix on devices (mac text_pattern_ops);
create index ip_bindings_any_site on ip_bindings (address, site_id);

-- Names of applications that a site has used, once each: the facts hold them a million times.
create table application_names (
  site_id bigint not null references sites,
  name text not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (site_id, name)
);
create index application_names_words on application_names using gin (search_words(name));
create index application_names_name on application_names (name text_pattern_ops);
create index application_names_last_seen_at on application_names using brin (last_seen_at);
