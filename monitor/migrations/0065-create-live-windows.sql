-- Ten-second windows while they are fresh. UNLOGGED: they are worth nothing after a crash, and must not cost a minute's
-- write. One row is one window of one capture, its addresses as columns of arrays, because windows are read whole.
create unlogged table live_windows (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  sensor_id bigint not null references sensors,
  run_id uuid not null,
  capture text not null,
  role text not null check (role in ('uplink', 'bridge')),
  started_at timestamptz not null,
  observed_ms integer not null,
  packets bigint not null,
  ip_bytes bigint not null,
  parser_dropped bigint not null,
  kernel_dropped bigint not null,
  merged_frames bigint not null,
  addresses inet[] not null,
  rx_bytes bigint[] not null,
  tx_bytes bigint[] not null,
  host_packets bigint[] not null,
  hosts_left_out integer not null,
  unique (sensor_id, run_id, capture, started_at)
);
create index live_windows_site_id on live_windows (site_id, started_at, id);
