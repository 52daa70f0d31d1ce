-- An alert of the monitor itself (a disk, a loop, the copy of the vulnerability database) concerns all sites.
alter table alert_episodes alter column site_id drop not null;
update alert_episodes set site_id = null where kind = 'vulnerability_copy_old';
