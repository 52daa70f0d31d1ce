-- What each share's worker is applying, committed before it begins and cleared by the transaction that applies it: what a
-- follower finds here was under way when its worker ended, and that counts as an attempt.
create table inbox_attempts (
  share integer primary key,
  term bigint not null,
  upload_ids bigint[] not null,
  began_at timestamptz not null
);

-- Bodies are compressed already.
alter table inbox_uploads alter column body set storage external;
-- A queue: dead rows at its front are what the next look has to pass.
alter table inbox_uploads set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.2);
