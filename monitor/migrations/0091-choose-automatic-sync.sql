-- Whether the inventory is imported by itself, or by "Sync now" alone (NET-4.7).
alter table operations_connection add column is_sync_automatic boolean not null default true;
