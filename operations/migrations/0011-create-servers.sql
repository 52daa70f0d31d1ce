-- A place that customers choose, and the hypervisor clusters that stand in it.
create table locations (
  id bigint generated always as identity primary key,
  slug text not null unique,
  name text not null,
  country text not null
);
create table clusters (
  id bigint generated always as identity primary key,
  location_id bigint not null references locations (id),
  name text not null unique,
  driver text not null,
  created_at timestamptz not null default svc_now()
);
create index clusters_location_id on clusters (location_id);

create table images (
  id bigint generated always as identity primary key,
  slug text not null unique,
  name text not null,
  family text not null,
  is_offered boolean not null default true
);
create table plans (
  id bigint generated always as identity primary key,
  slug text not null unique,
  name text not null,
  vcpus integer not null check (vcpus > 0),
  memory_mb integer not null check (memory_mb > 0),
  disk_gb integer not null check (disk_gb > 0),
  hourly_quanta bigint not null check (hourly_quanta > 0),
  monthly_cap_quanta bigint not null check (monthly_cap_quanta >= hourly_quanta),
  is_offered boolean not null default true
);

-- One order for each create. The password is the one that provisioning gives the guest; no other table holds it.
create table server_orders (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  plan_id bigint not null references plans (id),
  state text not null check (state in ('created', 'paid', 'unpaid')),
  billing_cycle text not null check (billing_cycle = 'hourly'),
  due_quanta bigint not null check (due_quanta >= 0),
  root_password text not null,
  created_at timestamptz not null default svc_now(),
  paid_at timestamptz
);
create index server_orders_tenant_id on server_orders (tenant_id, created_at);
create index server_orders_plan_id on server_orders (plan_id);

create table servers (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  order_id bigint not null unique references server_orders (id),
  plan_id bigint not null references plans (id),
  image_id bigint not null references images (id),
  cluster_id bigint not null references clusters (id),
  node text,
  name text not null,
  hostname text not null,
  labels jsonb not null default '{}',
  ssh_keys jsonb not null default '[]',
  user_data text,
  provisioning_state text not null default 'queued'
    check (provisioning_state in ('queued', 'provisioning', 'ready', 'failed', 'deleting', 'deleted')),
  power_state text not null default 'unknown'
    check (power_state in ('unknown', 'starting', 'running', 'stopping', 'stopped', 'rebooting')),
  failure jsonb,
  hourly_quanta bigint not null,
  monthly_cap_quanta bigint not null,
  billed_until timestamptz,
  created_at timestamptz not null default svc_now(),
  provisioned_at timestamptz,
  status_changed_at timestamptz not null default svc_now(),
  updated_at timestamptz not null default svc_now(),
  deleted_at timestamptz
);
create index servers_tenant_id on servers (tenant_id, id) where provisioning_state <> 'deleted';
create index servers_plan_id on servers (plan_id);
create index servers_image_id on servers (image_id);
create index servers_cluster_id on servers (cluster_id);

-- The guest's network cards. A MAC belongs to one living guest at a time.
create table server_interfaces (
  id bigint generated always as identity primary key,
  server_id bigint not null references servers (id),
  mac_address text not null check (mac_address ~ '^([0-9a-f]{2}:){5}[0-9a-f]{2}$'),
  bridge text,
  vlan integer,
  released_at timestamptz
);
create index server_interfaces_server_id on server_interfaces (server_id);
create unique index server_interfaces_mac_address on server_interfaces (mac_address) where released_at is null;

-- What was asked of a server. At most one action of a server is unfinished: the index decides between two callers.
create table server_actions (
  id bigint generated always as identity primary key,
  server_id bigint not null references servers (id),
  command text not null check (command in ('create', 'start', 'shutdown', 'stop', 'reboot', 'reset', 'destroy')),
  status text not null default 'queued' check (status in ('queued', 'running', 'success', 'error')),
  progress integer not null default 0,
  changed boolean not null default true,
  outcome text,
  error jsonb,
  requested_by_key text,
  requested_by_person_id bigint references people (id),
  created_at timestamptz not null default svc_now(),
  started_at timestamptz,
  finished_at timestamptz
);
create index server_actions_server_id on server_actions (server_id, id);
create index server_actions_requested_by_person_id on server_actions (requested_by_person_id);
create unique index server_actions_unfinished on server_actions (server_id) where status in ('queued', 'running');

-- What each server has cost in each UTC month, for the monthly cap.
create table server_charges (
  server_id bigint not null references servers (id),
  month date not null,
  charged_quanta bigint not null,
  primary key (server_id, month)
);
