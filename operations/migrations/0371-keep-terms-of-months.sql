-- What was free in a month and what further requests cost: noted while it runs, kept with an account's month when it closes.
create table usage_terms (
  month date primary key check (extract(day from month) = 1),
  included_count bigint not null,
  rate_quanta bigint not null,
  unit_requests bigint not null
);
alter table usage_months add column rate_quanta bigint, add column unit_requests bigint;
