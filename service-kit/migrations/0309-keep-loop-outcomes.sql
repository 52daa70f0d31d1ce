-- How the runs of a loop go, for alerts and pages. All are null where no loop runs under the lease, also after an orderly
-- stop: what an operator has stopped is no fault.
alter table leases
  add interval_seconds integer,
  add succeeded_at timestamptz,
  add failing_since timestamptz,
  add last_error text;
