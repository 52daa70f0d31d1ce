-- Every sensor asks for its plan twice a minute: the addresses of its node, and those of its cluster that no node has.
create index allocation_targets_cluster_id on allocation_targets (cluster_id, address) where is_supported;
create index vm_placements_cluster_node on vm_placements (cluster_id, node, address) where ended_at is null and address is not null;
