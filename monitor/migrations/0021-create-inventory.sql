-- Virtual machines as operations lists them. A row stays when its machine goes: `retired_at` says since when.
create table inventory_vms (
  cluster_id bigint not null,
  vm_id bigint not null,
  node text,
  name text not null,
  state text not null,
  -- When operations last changed the record; how old the whole inventory is stands in inventory_state.
  updated_at timestamptz not null,
  first_seen_at timestamptz not null default svc_now(),
  last_seen_at timestamptz not null default svc_now(),
  retired_at timestamptz,
  primary key (cluster_id, vm_id)
);

create table inventory_interfaces (
  cluster_id bigint not null,
  vm_id bigint not null,
  interface_id bigint not null,
  mac text not null,
  bridge text,
  vlan integer,
  addresses inet[] not null,
  retired_at timestamptz,
  primary key (cluster_id, vm_id, interface_id),
  foreign key (cluster_id, vm_id) references inventory_vms
);
create index inventory_interfaces_mac on inventory_interfaces (mac) where retired_at is null;

-- Machines that a signed notice called destroyed. The key makes a redelivery a duplicate; the stamp stops a
-- page-through that had started before from listing the machine again.
create table vm_tombstones (
  cluster_id bigint not null,
  vm_id bigint not null,
  destroyed_at timestamptz,
  received_at timestamptz not null default svc_now(),
  primary key (cluster_id, vm_id)
);
create index vm_tombstones_received_at on vm_tombstones (received_at);

create table inventory_state (
  id integer primary key default 1 check (id = 1),
  last_run_at timestamptz,
  last_success_at timestamptz,
  -- A fixed, safe description.
  last_error text,
  last_counts jsonb not null default '{}'
);
insert into inventory_state default values;
