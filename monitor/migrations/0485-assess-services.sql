-- What the copied records say of the services that scans found, bound to the evidence of each.

-- Counts changes of the product's records; a failed refresh changes none.
alter table vulnerability_products add column revision bigint not null default 0;
alter table vulnerability_products add column first_attempt_at timestamptz not null default svc_now();
update vulnerability_products set revision = 1 where refreshed_at is not null;

-- A product in one version. What the records say of it is the same for every service that runs it, so it is stored once.
create table vulnerability_software (
  id bigint generated always as identity primary key,
  product text not null,
  -- Numbers, stage and step as they are compared.
  version text not null,
  -- Of our own rules, and of the product's records, that were compared; -1: never.
  rules integer not null default -1,
  revision bigint not null default -1,
  checked_at timestamptz,
  -- Age of the records; null: records of the product were never fetched.
  database_at timestamptz,
  critical integer not null default 0,
  high integer not null default 0,
  medium integer not null default 0,
  low integer not null default 0,
  -- Severity `none`, and those without one.
  unrated integer not null default 0,
  -- More findings than are stored.
  left_out integer not null default 0,
  -- Numbers of findings of severity high and critical.
  severe text[] not null default '{}',
  unique (product, version)
);

create table vulnerability_findings (
  software_id bigint not null references vulnerability_software on delete cascade,
  cve text not null,
  -- Order of severity.
  place integer not null,
  rating text check (rating in ('none', 'low', 'medium', 'high', 'critical')),
  score float8,
  is_known_exploited boolean not null,
  finding jsonb not null,
  primary key (software_id, cve)
);
create index vulnerability_findings_cve on vulnerability_findings (cve);

-- Servers with scan evidence, and when each is assessed next.
create table vulnerability_servers (
  cluster_id bigint not null,
  vm_id bigint not null,
  site_id bigint not null references sites,
  -- Counts results of scans of the server; `assessed`: how many of them were assessed.
  evidence bigint not null default 1,
  assessed bigint not null default 0,
  rules integer not null default -1,
  due_at timestamptz not null default svc_now(),
  -- The oldest evidence expires.
  expires_at timestamptz not null default 'infinity',
  evidence_at timestamptz not null default svc_now(),
  -- Grows with every check, also when the clock was put back.
  checked_at timestamptz,
  database_at timestamptz,
  services integer not null default 0,
  unable integer not null default 0,
  ignored integer not null default 0,
  critical integer not null default 0,
  high integer not null default 0,
  medium integer not null default 0,
  low integer not null default 0,
  unrated integer not null default 0,
  primary key (cluster_id, vm_id)
);
create index vulnerability_servers_due_at on vulnerability_servers (due_at);
create index vulnerability_servers_site_id on vulnerability_servers (site_id);
create index vulnerability_servers_evidence_at on vulnerability_servers (evidence_at);

-- One row for each open port, by the newest observation of it.
create table vulnerability_services (
  cluster_id bigint not null,
  vm_id bigint not null,
  address inet not null,
  transport text not null check (transport in ('tcp', 'udp')),
  port integer not null,
  scan_id uuid not null,
  first_observed_at timestamptz not null,
  observed_at timestamptz not null,
  -- The newest observation of each profile.
  common_at timestamptz,
  full_at timestamptz,
  service text,
  product text,
  version text,
  extra_info text,
  -- Of product, version, extra information and CPE names: another version is another one.
  fingerprint text not null,
  -- Of a package: its original.
  software_id bigint references vulnerability_software,
  -- Key of a known product.
  product_key text,
  -- Why it can't be assessed.
  reason text,
  primary key (cluster_id, vm_id, address, transport, port),
  foreign key (cluster_id, vm_id) references vulnerability_servers on delete cascade
);
create index vulnerability_services_software_id on vulnerability_services (software_id);
create index vulnerability_services_observed_at on vulnerability_services (observed_at);

-- What operations was told about each address.
create table vulnerability_projections (
  cluster_id bigint not null,
  vm_id bigint not null,
  address inet not null,
  -- The scan of the newest evidence.
  scan_id uuid not null,
  evidence_at timestamptz not null,
  -- The check that operations answered about, and under which connection.
  told_check timestamptz,
  told_revision bigint,
  outcome text,
  answered_at timestamptz,
  primary key (cluster_id, vm_id, address),
  foreign key (cluster_id, vm_id) references vulnerability_servers on delete cascade
);

-- Findings of severity high and critical that operators were alerted of, so that each is told once.
create table vulnerability_noted (
  cluster_id bigint not null,
  vm_id bigint not null,
  transport text not null,
  port integer not null,
  fingerprint text not null,
  cves text[] not null,
  -- Since when the server does not have this software on the port any more.
  gone_at timestamptz,
  primary key (cluster_id, vm_id, transport, port, fingerprint),
  foreign key (cluster_id, vm_id) references vulnerability_servers on delete cascade
);
create index vulnerability_noted_gone_at on vulnerability_noted (gone_at);

-- Findings that an operator does not want to see among the active ones.
create table vulnerability_ignores (
  id bigint generated always as identity primary key,
  cluster_id bigint not null,
  vm_id bigint not null,
  address inet not null,
  transport text not null,
  port integer not null,
  fingerprint text not null,
  cve text not null,
  -- The allocation of the address at that time, as operations listed it; null: it listed none.
  generation text,
  reason text not null,
  created_by text not null,
  created_at timestamptz not null default svc_now(),
  until timestamptz,
  ended_at timestamptz,
  -- Who ended it, `expired` or `reassigned`.
  ended_by text
);
create unique index vulnerability_ignores_open
  on vulnerability_ignores (cluster_id, vm_id, address, transport, port, fingerprint, cve) where ended_at is null;
create index vulnerability_ignores_ended_at on vulnerability_ignores (ended_at);

-- What scans of before found.
insert into vulnerability_servers (cluster_id, vm_id, site_id)
select cluster_id, vm_id, max(site_id) from scan_observations group by cluster_id, vm_id;
