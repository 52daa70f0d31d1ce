-- Search by the beginnings of words, with what every PostgreSQL has. Names are cut at what is neither letter nor
-- digit, so "db" finds "prod-db-3".
create function search_words(name text) returns tsvector language sql immutable strict parallel safe as $$
  select array_to_tsvector(array_remove(regexp_split_to_array(lower(name), '[[:space:][:punct:]]+'), ''))
$$;
create index servers_words on servers using gin (search_words(name || ' ' || hostname))
  where provisioning_state <> 'deleted';
create index tenants_words on tenants using gin (search_words(name));
create index organizations_words on organizations using gin (search_words(name));
create index allocations_held_address on allocations (address) where released_at is null;
