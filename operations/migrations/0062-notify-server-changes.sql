-- Whoever waits for a server is told that something about it changed; what, it looks up for itself. Sent at commit,
-- so nobody is woken for what was rolled back.
create function notify_server_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_operations', 'server:' || case tg_table_name when 'servers' then new.id
    else (to_jsonb(new) ->> 'server_id')::bigint end);
  return null;
end $$;
create trigger servers_notify after update of provisioning_state, power_state on servers for each row
  when (old.provisioning_state is distinct from new.provisioning_state
    or old.power_state is distinct from new.power_state)
  execute function notify_server_change();
create trigger server_actions_notify after update of status on server_actions for each row
  when (old.status is distinct from new.status) execute function notify_server_change();
