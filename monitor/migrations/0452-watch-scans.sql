-- Since when a sensor's plans name a target, and of which site a sensor's plan is.
alter table scan_targets add column first_named_at timestamptz not null default svc_now();
alter table scan_plans add column site_id bigint references sites;
update scan_plans p set site_id = s.site_id from sensors s where s.id = p.sensor_id;
create index scan_plans_site on scan_plans (site_id);
