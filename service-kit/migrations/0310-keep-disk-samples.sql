-- Free space of the disks that hold a program's data, once a minute for each machine. The samples of six hours say how fast a
-- disk fills; older ones are deleted with each new one.
create table disk_samples (
  host text not null,
  path text not null,
  at timestamptz not null,
  free_bytes bigint not null,
  total_bytes bigint not null,
  primary key (host, path, at)
);
