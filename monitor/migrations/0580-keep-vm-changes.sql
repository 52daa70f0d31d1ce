-- Changes of servers that operations told of and that the inventory does not show: that and when, for the flags of charts.
create table vm_changes (
  -- As operations names the change, so that a page that is read twice counts once.
  id uuid primary key,
  cluster_id bigint not null,
  vm_id bigint not null,
  kind text not null,
  occurred_at timestamptz not null
);
create index vm_changes_cluster on vm_changes (cluster_id, occurred_at);
create index vm_changes_server on vm_changes (cluster_id, vm_id, occurred_at);
create index vm_changes_occurred_at on vm_changes (occurred_at);

-- Where the list of changes was read to, of which connection; another connection's list is read from its beginning.
alter table inventory_state add column changes_after text, add column changes_revision bigint;
