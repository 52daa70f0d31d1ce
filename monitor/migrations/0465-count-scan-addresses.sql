-- Addresses that the plan made last could name: those above its bound are left out.
alter table scan_plans add column entries integer not null default 0;
