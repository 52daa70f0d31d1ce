-- What the monitor has to be told about destroyed servers, until it has acknowledged it.
create table destroy_notices (
  id bigint generated always as identity primary key,
  cluster_id bigint not null references clusters (id),
  server_id bigint not null unique references servers (id),
  mac_addresses text[] not null,
  destroyed_at timestamptz not null,
  attempts integer not null default 0,
  last_error text,
  acknowledged_at timestamptz
);
create index destroy_notices_cluster_id on destroy_notices (cluster_id);
create index destroy_notices_pending on destroy_notices (id) where acknowledged_at is null;
