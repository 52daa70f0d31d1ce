-- What the simulated hypervisor keeps of a guest beside its NICs and its power. Guests of before have no image and no sizes.
alter table simulated_guests
  add column image text,
  add column rebuild bigint not null default 0,
  add column vcpus integer,
  add column memory_mb integer,
  add column disk_gb integer,
  add column password_digest text;
