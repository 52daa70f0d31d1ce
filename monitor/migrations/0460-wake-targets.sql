-- What may change the targets of operations is told at commit, also to another process: a cluster of a site, another connection,
-- and servers that the inventory did not list before.
create function notify_target_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_monitor', 'targets');
  return null;
end $$;
create trigger cluster_mapped after insert or update on site_clusters for each row execute function notify_target_change();
create trigger connection_changed after insert or update of revision on operations_connection for each row
  execute function notify_target_change();
create trigger server_placed after insert on vm_placements for each row execute function notify_target_change();
