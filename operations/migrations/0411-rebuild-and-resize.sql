-- Rebuild, resize and reset_password: what each asks for stands on its action, with the prices of that moment. The password
-- is kept for the answer to a repeated call, at most 24 hours, and for the job that sets it.
alter table server_actions drop constraint server_actions_command_check;
alter table server_actions add constraint server_actions_command_check check (command in
  ('create', 'start', 'shutdown', 'stop', 'reboot', 'reset', 'rebuild', 'resize', 'reset_password', 'destroy'));
alter table server_actions
  add column request jsonb,
  add column root_password text;
create index server_actions_root_password on server_actions (created_at) where root_password is not null;

-- Null: the disk of the plan. A resize may keep a smaller one, so that the server can have its old plan again.
alter table servers add column disk_gb integer;
