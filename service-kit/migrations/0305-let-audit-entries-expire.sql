-- Where the audit trail has an owner of its own (packaging/postgres/audit.sql), the program may not delete: this function,
-- which runs as the owner, deletes what a year has passed over. Its path and those of the triggers hold no object that a
-- session has put before PostgreSQL's own.
alter function audit_entries_stamp() set search_path = pg_catalog, public;
alter function audit_entries_refuse() set search_path = pg_catalog, public;
create function audit_entries_expire(rows_max integer) returns integer
language sql security definer set search_path = pg_catalog, public as $$
  with gone as (
    delete from audit_entries where id in (
      select id from audit_entries where occurred_at < svc_now() - interval '1 year' order by occurred_at limit rows_max)
    returning 1)
  select count(*)::int from gone
$$;
revoke execute on function audit_entries_expire(integer) from public;
