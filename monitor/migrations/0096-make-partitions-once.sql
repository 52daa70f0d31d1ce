-- Whether a partition is there is asked of the catalog itself once the lock is held: `to_regclass` may still answer from
-- what this session remembers, and then two workers make the same one.
create or replace function ensure_fact_partition(parent text, starts_at timestamptz, span interval) returns void
language plpgsql as $$
declare
  partition_name text := parent || '_p' || to_char(starts_at at time zone 'UTC',
    case when span < interval '1 day' then 'YYYYMMDDHH24' else 'YYYYMMDD' end);
begin
  if to_regclass(partition_name) is not null then return; end if;
  perform pg_advisory_xact_lock(7318101);
  if exists (select from pg_class where relname = partition_name and relnamespace = current_schema()::regnamespace) then
    return;
  end if;
  execute format('create table %I (like %I including defaults including constraints)', partition_name, parent);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, partition_name,
    starts_at, starts_at + span);
end
$$;
