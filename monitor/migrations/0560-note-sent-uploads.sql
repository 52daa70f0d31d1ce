-- Uploads that are sent to an engine without a transaction, and with which others: written before the engine is sent them, removed in
-- the transaction that ends them. What is found here when an upload comes again may have arrived.
create table sent_uploads (
  sensor_id bigint not null,
  spool_id uuid not null,
  sequence bigint not null,
  -- Those of one batch arrive together, table by table and day by day; null: sent by itself.
  batch_id uuid,
  sent_at timestamptz not null default svc_now(),
  primary key (sensor_id, spool_id, sequence)
);
