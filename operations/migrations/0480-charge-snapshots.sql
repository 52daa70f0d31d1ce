-- Hours that a snapshot is charged for: from when it was ready. Those before this migration cost nothing.
alter table server_snapshots
  add column ready_at timestamptz,
  add column charged_hours bigint not null default 0;
update server_snapshots set ready_at = svc_now() where state = 'ready';
alter table server_snapshots add check (state <> 'ready' or ready_at is not null);
