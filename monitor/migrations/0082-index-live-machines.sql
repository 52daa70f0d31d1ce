-- Rows of machines stay when they go, so those that live become few among them; each import asks for all that live.
create index inventory_vms_live on inventory_vms (cluster_id, vm_id) where retired_at is null;
