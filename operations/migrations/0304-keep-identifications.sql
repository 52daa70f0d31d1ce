-- What a scan read of a service is evidence of its own, with its own time: a newer scan that ends before identification, or that
-- a service does not answer, leaves it (NET-2.7.5).
alter table port_observations
  add column identified_at timestamptz,
  add column identified_scan_id uuid,
  -- As common_service.
  add column identified_service jsonb;
update port_observations o set identified_at = e.at, identified_scan_id = e.scan_id, identified_service = e.service
from (
  select distinct on (allocation_id, transport, port) allocation_id, transport, port, at, scan_id, service
  from port_observations cross join lateral (values (common_observed_at, common_scan_id, common_service),
    (full_observed_at, full_scan_id, full_service)) as e(at, scan_id, service)
  where service->>'method' = 'probed' and service->>'service' is distinct from 'tcpwrapped'
  order by allocation_id, transport, port, at desc) e
where e.allocation_id = o.allocation_id and e.transport = o.transport and e.port = o.port;
