-- Whether the token's sensor takes the place of the one that its node has; otherwise its enrolment is refused.
alter table enrolment_tokens add column replaces boolean not null default false;

-- When an import listed the interface last, as of machines: an update of a machine says nothing of its interfaces.
alter table inventory_interfaces add column last_seen_at timestamptz not null default svc_now();
update inventory_interfaces i set last_seen_at = coalesce(i.retired_at, v.last_seen_at)
  from inventory_vms v where v.cluster_id = i.cluster_id and v.vm_id = i.vm_id;
