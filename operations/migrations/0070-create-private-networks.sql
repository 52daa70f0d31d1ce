-- Private networks of an account. One network is one segment at the hypervisors, named by its id, so that two accounts
-- may use the same block of addresses and never meet.
create table private_networks (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  location_id bigint not null references locations (id),
  name text not null,
  description text,
  cidr cidr not null check (family(cidr) = 4 and masklen(cidr) between 16 and 29),
  labels jsonb not null default '{}',
  sync_state text not null default 'pending' check (sync_state in ('pending', 'synced', 'error')),
  -- Rises with every wish to sync; a run that started before the newest wish runs once more.
  sync_wanted bigint not null default 1,
  sync_error jsonb,
  last_synced_at timestamptz,
  created_at timestamptz not null default svc_now(),
  updated_at timestamptz not null default svc_now(),
  -- No two networks of an account share an address, also when they are made at the same moment.
  constraint private_networks_overlap exclude using gist (int8range(tenant_id, tenant_id, '[]') with &&, cidr inet_ops with &&)
);
create index private_networks_tenant_id on private_networks (tenant_id, id);
create index private_networks_location_id on private_networks (location_id);

-- A server's card on a network. The row goes when the hypervisor has taken the card away, so an address is not given
-- out again while its former owner still holds it.
create table network_attachments (
  id bigint generated always as identity primary key,
  network_id bigint not null references private_networks (id),
  server_id bigint not null references servers (id),
  ip inet not null check (family(ip) = 4 and masklen(ip) = 32),
  mac_address text not null unique check (mac_address ~ '^([0-9a-f]{2}:){5}[0-9a-f]{2}$'),
  state text not null default 'attaching' check (state in ('attaching', 'attached', 'detaching', 'error')),
  error jsonb,
  requires_reboot boolean not null default false,
  attached_at timestamptz,
  created_at timestamptz not null default svc_now(),
  constraint network_attachments_server unique (network_id, server_id),
  constraint network_attachments_ip unique (network_id, ip)
);
create index network_attachments_server_id on network_attachments (server_id);

-- False for a server that is reached through private networks only.
alter table servers add column has_public_ip boolean not null default true;

-- The simulated hypervisor's cards on private segments.
create table simulated_interfaces (
  guest text not null,
  network_id bigint not null,
  mac_address text not null unique,
  address inet not null,
  primary key (guest, network_id)
);
alter table simulated_guests alter column mac_address drop not null;
