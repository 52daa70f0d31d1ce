-- What a local address exchanged under one name in one minute at one capture. Rows only ever get appended: several of
-- one key add. Scope and direction decide which vantage counts (NET-2.2.5).
create table application_facts (
  minute timestamptz not null,
  site_id bigint not null,
  capture_id bigint not null,
  vantage text not null check (vantage in ('uplink', 'bridge')),
  scope text not null check (scope in ('internet', 'internal', 'transit')),
  direction text not null check (direction in ('outbound', 'inbound', 'internal', 'transit')),
  -- The local endpoint; of internal traffic the client. Null for traffic between two foreign endpoints.
  local_address inet,
  name text not null,
  protocol smallint not null,
  server_port integer,
  evidence text not null,
  -- False where nothing but the remote address names it.
  is_attributed boolean not null,
  inbound_bytes bigint not null,
  outbound_bytes bigint not null,
  packets bigint not null,
  -- When the local endpoint last sent; null: it did not.
  last_sent_at timestamptz
) partition by range (minute);
create index application_facts_site_minute on application_facts (site_id, minute);
create index application_facts_local_address on application_facts (site_id, local_address, minute);

-- Exact client and service endpoints, for 24 hours (NET-2.2.7); a partition an hour, so that they leave on time.
create table endpoint_pairs (
  minute timestamptz not null,
  site_id bigint not null,
  capture_id bigint not null,
  vantage text not null,
  scope text not null,
  direction text not null,
  client inet not null,
  server inet not null,
  name text not null,
  protocol smallint not null,
  server_port integer,
  evidence text not null,
  client_bytes bigint not null,
  server_bytes bigint not null,
  packets bigint not null
) partition by range (minute);
create index endpoint_pairs_site_minute on endpoint_pairs (site_id, minute);
create index endpoint_pairs_service on endpoint_pairs (site_id, name, minute);
