-- What the provider's own port scans caused of a minute: a part of its bytes, so these stay as they are. Minutes of before, and those
-- of an older monitor, have none.
alter table protect_minutes add column own_scan_inbound_bytes bigint not null default 0,
  add column own_scan_outbound_bytes bigint not null default 0;
alter table protect_usage_tens add column own_scan_inbound_bytes bigint not null default 0,
  add column own_scan_outbound_bytes bigint not null default 0;
alter table protect_usage_hours add column own_scan_inbound_bytes bigint not null default 0,
  add column own_scan_outbound_bytes bigint not null default 0;
