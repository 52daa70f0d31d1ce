-- A kind of hand-off: attacks are dropped at the hypervisor's uplink. Such an action counts what it would drop until `drop_at`.
alter table hand_off_rules drop constraint hand_off_rules_kind_check,
  add constraint hand_off_rules_kind_check check (kind in ('webhook', 'command', 'blackhole', 'flowspec', 'filter'));
-- Null: it counts until an operator lets it drop.
alter table hand_off_actions add column drop_at timestamptz, add column drop_by text;
