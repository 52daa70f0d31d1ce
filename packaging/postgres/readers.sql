-- Columns that people and dashboards may read: all except secrets and unprocessed data of customers.
-- After the program's first start, and again after an upgrade that brought tables, as the program's own role:
--   psql -f readers.sql -U svc_monitor monitor
-- The role is the database's name with `_reader`. Rows of partitions are read through the table that they belong to.
do $$
declare
  reader text := current_database() || '_reader';
  secret text := '(digest|secret|password|token|hash|checksum|payload|user_data|credential|sealed|wrapped|^body$|^request$|^bucket$)';
  readable record;
begin
  execute format('grant usage on schema public to %I', reader);
  execute format('revoke all on all tables in schema public from %I', reader);
  for readable in
    select c.oid::regclass as name, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
      and a.attnum > 0 and not a.attisdropped and a.attname !~ secret
    group by c.oid
  loop
    execute format('grant select (%s) on %s to %I', readable.columns, readable.name, reader);
  end loop;
  -- The monitor's own reader (SVC_MONITOR_READER_DATABASE_URL) also tells sensors by the digests of their credentials.
  if to_regclass('sensor_credentials') is not null and exists (select 1 from pg_roles where rolname = 'svc_' || reader) then
    execute format('grant select on sensor_credentials to %I', 'svc_' || reader);
  end if;
end
$$;
