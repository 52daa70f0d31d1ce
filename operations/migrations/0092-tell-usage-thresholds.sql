-- Up to which share of the month's free requests the account has been told.
alter table usage_months add column told_percent smallint not null default 0;
