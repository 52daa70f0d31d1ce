-- The fingerprint of a software is of its product and version alone, and made here: with further text, such as memcached's
-- uptime, every scan made another one, and ignores of customers ended. What is ignored, and what was told, goes on.
create function pg_temp.fingerprint_of(product text, version text) returns text immutable language sql as $$
  select encode(sha256(convert_to(coalesce(product, '') || E'\n' || coalesce(version, ''), 'UTF8')), 'hex')
$$;

update finding_ignores i set fingerprint = pg_temp.fingerprint_of(s.product, s.version)
from finding_services s
where s.allocation_id = i.allocation_id and s.transport = i.transport and s.port = i.port and s.fingerprint = i.fingerprint;

-- At two addresses of a server the same software may have had two fingerprints.
with former as (
  delete from known_findings k using finding_projections p
  join finding_services s on s.allocation_id = p.allocation_id
  where p.server_id = k.server_id and s.transport = k.transport and s.port = k.port and s.fingerprint = k.fingerprint
  returning k.*, pg_temp.fingerprint_of(s.product, s.version) as present)
insert into known_findings (server_id, tenant_id, transport, port, fingerprint, cve_id, first_at, severity_rank, previous_rank)
select server_id, max(tenant_id), transport, port, present, cve_id, min(first_at), max(severity_rank), max(previous_rank)
from former group by server_id, transport, port, present, cve_id;

update findings f set fingerprint = pg_temp.fingerprint_of(s.product, s.version)
from finding_services s where s.allocation_id = f.allocation_id and s.transport = f.transport and s.port = f.port;
update finding_services set fingerprint = pg_temp.fingerprint_of(product, version);
drop function pg_temp.fingerprint_of;
