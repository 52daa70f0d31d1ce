-- Who requested a scan: a person, or a key that acts for one. Both are empty for automatic requests, and for older ones.
alter table scan_requests
  add column person_id bigint references people,
  add column is_by_key boolean not null default false;
create index scan_requests_person_id on scan_requests (person_id);

-- The operators' list of all customers' scans, newest first.
create index scan_requests_newest on scan_requests (requested_at desc, id desc);
create index port_scans_failed on port_scans (started_at desc, scan_id desc) where kind = 'routine' and state = 'partial';
