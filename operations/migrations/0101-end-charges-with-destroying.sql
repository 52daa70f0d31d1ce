-- When somebody asked for the server to be destroyed: no hour that begins later is charged, however long the hypervisor takes.
alter table servers add column deleting_at timestamptz;
update servers s set deleting_at = coalesce(
  (select max(a.created_at) from server_actions a where a.server_id = s.id and a.command = 'destroy'), s.deleted_at)
where s.provisioning_state in ('deleting', 'deleted');
