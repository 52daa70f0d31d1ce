-- Before this time the trackers of distributions are not read again.
alter table vulnerability_source add column trackers_after timestamptz not null default '-infinity';
