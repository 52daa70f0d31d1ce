-- Drills: synthetic counters of an attack that sensors take for traffic of an address..
create table protection_drills (
  id uuid primary key,
  site_id bigint not null references sites,
  address inet not null,
  direction text not null check (direction in ('inbound', 'outbound')),
  class text not null,
  pps float8 not null,
  bps float8 not null,
  starts_at timestamptz not null,
  seconds integer not null check (seconds between 1 and 600),
  started_by text not null,
  stopped_at timestamptz,
  stopped_by text
);
create index protection_drills_site on protection_drills (site_id, starts_at);
create index protection_drills_starts_at on protection_drills (starts_at);
