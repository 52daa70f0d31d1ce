-- The key that took the place of a rotated one, which goes on for a day.
alter table api_keys add column replaced_by text references api_keys (key_id);
create index api_keys_replaced_by on api_keys (replaced_by) where replaced_by is not null;
