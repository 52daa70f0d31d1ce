-- Gives the audit trail to a role of its own, so that the program may write entries and read them, and can neither change
-- nor delete them, switch their triggers off, nor drop their table. An embedded PostgreSQL does this at each start.
-- For a PostgreSQL of your own, after the program's first start and after `pg_restore --no-owner`, as its superuser:
--   psql -v ON_ERROR_STOP=1 -f audit.sql operations
-- The role is the database's name with `_audit`; it can't log in. An administrator who is no superuser is made a
-- member of it and of the program's role first. May be run again.
do $$
declare
  program name := (select pg_get_userbyid(relowner) from pg_class where oid = to_regclass('public.schema_migrations'));
  keeper name := current_database() || '_audit';
  made regprocedure;
begin
  if program is null then
    raise exception 'Start the program first: it has no tables in the database %.', current_database();
  end if;
  if (select rolsuper from pg_roles where rolname = program) then
    raise exception 'The program works as the superuser %, whom nothing can be kept from. Give it a role of its own (roles.sql).', program;
  end if;
  if not exists (select 1 from pg_roles where rolname = keeper) then
    execute format('create role %I nologin nosuperuser nocreatedb nocreaterole', keeper);
  end if;
  -- The owner of a schema may drop what is in it. With grant options: readers.sql is run as the program.
  execute format('alter schema public owner to %I', keeper);
  execute format('grant usage on schema public to %I with grant option', program);
  execute format('grant create on schema public to %I', program);
  execute format('alter table public.audit_entries owner to %I', keeper);
  execute format('revoke all on public.audit_entries from %I', program);
  execute format('grant select on public.audit_entries to %I with grant option', program);
  execute format('grant insert on public.audit_entries to %I', program);
  -- pg_dump reads it.
  execute format('grant select on sequence public.audit_entries_id_seq to %I', program);
  -- The clock as well: it says which entries are a year old.
  foreach made in array array['public.svc_now()', 'public.audit_entries_stamp()', 'public.audit_entries_refuse()',
    'public.audit_entries_expire(integer)']::regprocedure[] loop
    execute format('alter function %s owner to %I', made, keeper);
  end loop;
  execute format('grant execute on function public.audit_entries_expire(integer) to %I', program);
end
$$;
