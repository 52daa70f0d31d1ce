-- The customer's page tells the last attempt of a delivery from the last receipt, and says when deliveries of another monitor
-- site are refused (NET-2.9).
alter table port_scan_series
  add column attempted_at timestamptz not null default svc_now(),
  -- The last delivery of another source that was refused.
  add column refused_at timestamptz;

create index protect_incident_refusals_incident_id on protect_incident_refusals (incident_id);
