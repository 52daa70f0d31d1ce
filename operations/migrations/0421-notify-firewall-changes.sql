-- A caller that waits for a firewall is told when the hypervisor has it, or never got it. The rows of firewalls have no id.
create or replace function notify_server_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_operations', 'server:' || (to_jsonb(new) ->> case tg_table_name
    when 'servers' then 'id' else 'server_id' end));
  return null;
end $$;
create trigger firewalls_notify after update of status on firewalls for each row
  when (old.status is distinct from new.status) execute function notify_server_change();
