-- The fingerprint of a software is of its product and version alone: with further text, such as memcached's uptime, every scan
-- made another one, and ignores ended. What was ignored, and what was told, goes on.
create function pg_temp.fingerprint_of(product text, version text) returns text immutable language sql as $$
  select encode(sha256(convert_to(coalesce(product, '') || E'\n' || coalesce(version, ''), 'UTF8')), 'hex')
$$;

update vulnerability_ignores i set fingerprint = pg_temp.fingerprint_of(v.product, v.version)
from vulnerability_services v
where v.cluster_id = i.cluster_id and v.vm_id = i.vm_id and v.address = i.address and v.transport = i.transport
  and v.port = i.port and v.fingerprint = i.fingerprint;

-- At two addresses of a server the same software may have had two fingerprints.
with former as (
  delete from vulnerability_noted n using vulnerability_services v
  where v.cluster_id = n.cluster_id and v.vm_id = n.vm_id and v.transport = n.transport and v.port = n.port
    and v.fingerprint = n.fingerprint
  returning n.*, pg_temp.fingerprint_of(v.product, v.version) as present)
insert into vulnerability_noted (cluster_id, vm_id, transport, port, fingerprint, software_id, seq, gone_at)
select distinct on (cluster_id, vm_id, transport, port, present)
  cluster_id, vm_id, transport, port, present, software_id, seq, gone_at
from former order by cluster_id, vm_id, transport, port, present, seq desc;

update vulnerability_services set fingerprint = pg_temp.fingerprint_of(product, version);
drop function pg_temp.fingerprint_of;
