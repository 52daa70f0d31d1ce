-- Counts changes of what the catalogue answers with: the sum of the weights is how many were committed. A change replaces the rows that
-- no other transaction holds by one that weighs as much as all of them and itself: no change waits for another one, and few rows are left.
create table catalog_changes (weight bigint not null);

create function count_catalog_change() returns trigger language plpgsql as $$
begin
  with folded as (
    delete from catalog_changes where ctid in (select ctid from catalog_changes limit 64 for update skip locked)
    returning weight)
  insert into catalog_changes select 1 + coalesce(sum(weight), 0) from folded;
  return null;
end $$;

create trigger plans_change after insert or update or delete on plans execute function count_catalog_change();
create trigger images_change after insert or update or delete on images execute function count_catalog_change();
create trigger locations_change after insert or update or delete on locations execute function count_catalog_change();
create trigger clusters_change after insert or update or delete on clusters execute function count_catalog_change();
create trigger nodes_change after insert or delete or update of is_open, vcpus, memory_mb, disk_gb on nodes
  execute function count_catalog_change();
create trigger node_reservations_change after insert or delete or update of vcpus, memory_mb, disk_gb, released_at
  on node_reservations execute function count_catalog_change();
create trigger address_pools_change after insert or update or delete on address_pools execute function count_catalog_change();
create trigger address_holds_change after insert or delete on address_holds execute function count_catalog_change();
create trigger allocations_change after insert or delete or update of released_at on allocations
  execute function count_catalog_change();
create trigger reserved_addresses_change after insert or delete or update of state on reserved_addresses
  execute function count_catalog_change();
