-- What each sensor's host had room for when it told last. Apart from `sensors`, as contacts are; written about twice a
-- minute and never indexed but by its key, so that an update stays within its page.
create table sensor_conditions (
  sensor_id bigint primary key references sensors,
  observed_at timestamptz not null,
  received_at timestamptz not null,
  spool_pending_bytes bigint not null,
  spool_bytes_max bigint not null,
  spool_pending_uploads integer not null,
  disk_free_bytes bigint not null,
  disk_bytes bigint not null,
  is_paused boolean not null
) with (fillfactor = 70);
