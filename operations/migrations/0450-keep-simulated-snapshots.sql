-- What the simulated hypervisor keeps of a snapshot.
create table simulated_snapshots (
  guest text not null references simulated_guests (name) on delete cascade,
  snapshot bigint not null,
  image text,
  password_digest text,
  bytes bigint not null,
  primary key (guest, snapshot)
);
