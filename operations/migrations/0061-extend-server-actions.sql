-- How long a shutdown waits for the guest, and what is done when it did not halt.
alter table server_actions add column timeout_seconds integer not null default 0;
alter table server_actions add column on_timeout text check (on_timeout in ('fail', 'stop'));
-- What the hypervisor said about a failed provisioning, in its own words; for operators alone.
alter table servers add column failure_detail text;
