-- The guests of the simulated hypervisor. It keeps them here, as a hypervisor keeps its definitions on disk, so that
-- they outlive the process that simulates it.
create table simulated_guests (
  name text primary key,
  mac_address text not null unique,
  addresses inet[] not null,
  power text not null check (power in ('on', 'off')),
  made_at timestamptz not null default svc_now()
);
