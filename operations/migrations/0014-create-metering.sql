-- Requests per account and UTC month. `included_count` is written when the month closes; `overage_charged_count` is
-- the high-water mark of what has been billed.
create table usage_months (
  tenant_id bigint not null references tenants (id),
  month date not null check (extract(day from month) = 1),
  count bigint not null,
  included_count bigint,
  overage_charged_count bigint not null default 0,
  primary key (tenant_id, month)
);
create table usage_key_months (
  tenant_id bigint not null references tenants (id),
  month date not null,
  key_id text not null references api_keys (key_id),
  count bigint not null,
  primary key (tenant_id, month, key_id)
);
create index usage_key_months_key_id on usage_key_months (key_id);
