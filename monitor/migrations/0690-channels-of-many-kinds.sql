-- The program knows the kinds of channels and their settings. Routing is the same for all kinds: null matches everything.
alter table alert_channels add column settings jsonb not null default '{}';
update alert_channels set settings = case kind
  when 'email' then jsonb_build_object('recipients', array_to_string(recipients, ', '))
  else jsonb_build_object('url', url) end;
-- Their checks go with them.
alter table alert_channels drop column recipients, drop column url, drop constraint alert_channels_kind_check;
alter table alert_channels add column site_ids bigint[];
alter table alert_channels add column alert_kinds text[];
alter table alert_channels add column is_critical_only boolean not null default false;
-- Minutes of the day in a time zone; from the later to the earlier is over midnight.
alter table alert_channels add column quiet_from smallint check (quiet_from between 0 and 1439);
alter table alert_channels add column quiet_to smallint check (quiet_to between 0 and 1439);
alter table alert_channels add column quiet_zone text;
alter table alert_channels add check (num_nonnulls(quiet_from, quiet_to, quiet_zone) in (0, 3));
alter table alert_channels add check (kind <> 'webhook' or num_nonnulls(clear_secret, sealed_secret) = 1);

-- Held back by quiet hours, without holding back what follows.
alter table alert_notifications add column held_until timestamptz;
-- How the receiver named the message, for the one that says that the alert is over.
alter table alert_notifications add column reference text;
