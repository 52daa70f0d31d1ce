-- The one clock of SQL: months, leases and stamps ask it. Only test databases may move it, by a session setting,
-- so no setting of a real database can shift what is billed or who holds a lease.
create function svc_now() returns timestamptz language sql stable as $$
  select now() + case
    when current_database() like 'svc\_test\_%' then coalesce(nullif(current_setting('svc.clock_offset', true), '')::interval, interval '0')
    else interval '0'
  end
$$;
