-- Uploads whose facts are stored, so that an append that is repeated adds nothing. A row is written in the transaction of its
-- facts. An append is repeated while its upload is pending, which ends with that transaction; a day is ample.
create table appended_uploads (
  sensor_id bigint not null,
  spool_id uuid not null,
  sequence bigint not null,
  appended_at timestamptz not null default svc_now(),
  primary key (sensor_id, spool_id, sequence)
);
