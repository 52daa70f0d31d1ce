-- Requests per account and UTC day, for the charts of usage; the month's row stays what is billed.
create table usage_days (
  tenant_id bigint not null references tenants (id),
  day date not null,
  count bigint not null,
  primary key (tenant_id, day)
) with (fillfactor = 50);
create index usage_days_day on usage_days (day);

-- Counting changes no indexed column, so with room left in its page a row is replaced in place and no index grows.
alter table usage_months set (fillfactor = 50);
alter table usage_key_months set (fillfactor = 50);
create index usage_months_month on usage_months (month);
-- Those that still have to be closed.
create index usage_months_open on usage_months (month) where included_count is null;
