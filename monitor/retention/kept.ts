/** How long each table is kept (NET-8, retention). What stands in no line here is kept for good. */

export type KeptFor = '24 hours' | '3 months' | '1 year';

export interface KeptTable {
  table: string;
  /** The time that decides. */
  column: string;
  keptFor: KeptFor;
  /** True: whole partitions are dropped, and only the boundary's rows are deleted. */
  isPartitioned: boolean;
  /** Rows that this line is about, as SQL; all where absent. */
  only?: string;
}

export const keptTables: readonly KeptTable[] = [
  { table: 'endpoint_pairs', column: 'minute', keptFor: '24 hours', isPartitioned: true },
  { table: 'capture_minutes', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'host_minutes', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'application_facts', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'pair_hours', column: 'hour', keptFor: '24 hours', isPartitioned: true },
  { table: 'address_hours', column: 'hour', keptFor: '3 months', isPartitioned: true },
  { table: 'application_hours', column: 'hour', keptFor: '3 months', isPartitioned: true },
  { table: 'minute_owners', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'name_minutes', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'name_tens', column: 'start', keptFor: '3 months', isPartitioned: true },
  { table: 'rolled_tens', column: 'start', keptFor: '3 months', isPartitioned: false },
  { table: 'name_hours', column: 'hour', keptFor: '3 months', isPartitioned: true },
  { table: 'name_hour_locals', column: 'hour', keptFor: '3 months', isPartitioned: true },
  { table: 'name_day_locals', column: 'day', keptFor: '3 months', isPartitioned: true },
  { table: 'name_days', column: 'day', keptFor: '3 months', isPartitioned: true },
  { table: 'rolled_days', column: 'day', keptFor: '3 months', isPartitioned: false },
  { table: 'name_pair_minutes', column: 'minute', keptFor: '24 hours', isPartitioned: true },
  { table: 'name_pair_tens', column: 'start', keptFor: '24 hours', isPartitioned: true },
  { table: 'name_pair_hours', column: 'hour', keptFor: '24 hours', isPartitioned: true },
  { table: 'site_hours', column: 'hour', keptFor: '3 months', isPartitioned: false },
  { table: 'rolled_hours', column: 'hour', keptFor: '3 months', isPartitioned: false },
  { table: 'site_minutes', column: 'minute', keptFor: '3 months', isPartitioned: false },
  { table: 'probe_results', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'probe_minutes', column: 'minute', keptFor: '3 months', isPartitioned: true },
  { table: 'probe_hours', column: 'hour', keptFor: '3 months', isPartitioned: false },
  { table: 'alert_episodes', column: 'resolved_at', keptFor: '3 months', isPartitioned: false },
  {
    table: 'alert_notifications',
    column: 'created_at',
    keptFor: '3 months',
    isPartitioned: false,
    only: 'episode_id is null',
  },
  { table: 'set_aside_hosts', column: 'minute', keptFor: '3 months', isPartitioned: false },
  { table: 'telemetry_gaps', column: 'to_minute', keptFor: '3 months', isPartitioned: false },
  { table: 'ip_bindings', column: 'last_seen_at', keptFor: '3 months', isPartitioned: false },
  { table: 'ip_conflicts', column: 'resolved_at', keptFor: '3 months', isPartitioned: false },
  { table: 'vm_placements', column: 'ended_at', keptFor: '3 months', isPartitioned: false },
  { table: 'retired_macs', column: 'retired_at', keptFor: '3 months', isPartitioned: false },
  { table: 'application_names', column: 'last_seen_at', keptFor: '3 months', isPartitioned: false },
  { table: 'vm_tombstones', column: 'received_at', keptFor: '3 months', isPartitioned: false },
  {
    table: 'events',
    column: 'occurred_at',
    keptFor: '3 months',
    isPartitioned: false,
    only: "kind <> 'ddos_detected'",
  },
  {
    table: 'events',
    column: 'occurred_at',
    keptFor: '1 year',
    isPartitioned: false,
    only: "kind = 'ddos_detected'",
  },
];
