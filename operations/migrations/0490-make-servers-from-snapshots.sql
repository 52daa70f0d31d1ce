-- The snapshot that the first disk of a server is made from. The id of the server is drawn before its row exists. Until its
-- provisioning has ended, neither the snapshot nor the server of the snapshot can go.
create table server_sources (
  server_id bigint primary key,
  snapshot_id bigint not null,
  snapshot_server_id bigint not null
);
create index server_sources_snapshot_id on server_sources (snapshot_id);
