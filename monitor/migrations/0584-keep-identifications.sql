-- What a scan read of a service is evidence of its own, with its own time: a newer scan that ends before identification, or that
-- a service does not answer, leaves it (NET-2.7.5). The two profiles are kept apart.
create table scan_identifications (
  cluster_id bigint not null,
  vm_id bigint not null,
  address inet not null,
  transport text not null check (transport in ('tcp', 'udp')),
  port integer not null check (port between 1 and 65535),
  profile text not null check (profile in ('common', 'full')),
  identified_at timestamptz not null,
  scan_id uuid not null,
  service text,
  product text,
  version text,
  extra_info text,
  confidence integer not null,
  tunnel text,
  cpe text[] not null,
  primary key (cluster_id, vm_id, address, transport, port, profile)
);
create index scan_identifications_identified_at on scan_identifications (identified_at);

insert into scan_identifications (cluster_id, vm_id, address, transport, port, profile, identified_at, scan_id, service, product,
  version, extra_info, confidence, tunnel, cpe)
select cluster_id, vm_id, address, transport, port, profile, observed_at, scan_id, service, product, version, extra_info, confidence,
  tunnel, cpe
from scan_observations where method = 'probed' and service is distinct from 'tcpwrapped';
