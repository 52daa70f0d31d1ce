-- Severe findings get a number when their software is first seen to have them. What a service was alerted of is then one number
-- instead of a list of CVEs; a finding that disappears and comes back is not new.
create table vulnerability_severe (
  software_id bigint not null references vulnerability_software on delete cascade,
  cve text not null,
  seq bigint generated always as identity,
  primary key (software_id, cve)
);

alter table vulnerability_software drop column severe;
alter table vulnerability_software
  -- Present findings of severities that operators are alerted of, the highest number of them, and the most severe one.
  add column severe integer not null default 0,
  add column severe_seq bigint not null default 0,
  add column worst_cve text,
  -- Of the findings: where it is the same, they are not written again.
  add column digest text not null default '';
-- All is compared again, which numbers the findings.
update vulnerability_software set rules = -1;

drop table vulnerability_noted;
create table vulnerability_noted (
  cluster_id bigint not null,
  vm_id bigint not null,
  transport text not null,
  port integer not null,
  fingerprint text not null,
  software_id bigint not null references vulnerability_software,
  -- Severe findings up to this number were told.
  seq bigint not null,
  -- Since when the server does not have this software on the port any more.
  gone_at timestamptz,
  primary key (cluster_id, vm_id, transport, port, fingerprint),
  foreign key (cluster_id, vm_id) references vulnerability_servers on delete cascade
);
create index vulnerability_noted_software_id on vulnerability_noted (software_id);
create index vulnerability_noted_gone_at on vulnerability_noted (gone_at);
