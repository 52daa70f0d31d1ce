/** How long PostgreSQL keeps facts. Another engine that has a time to live of its own needs no line here. */
import type { KeptTable } from '#monitor/retention/index.ts';

export const keptFacts: readonly KeptTable[] = [
  { table: 'endpoint_pairs', column: 'minute', keptFor: '24 hours', isPartitioned: true },
  { table: 'appended_uploads', column: 'appended_at', keptFor: '24 hours', isPartitioned: false },
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
  { table: 'telemetry_gaps', column: 'to_minute', keptFor: '3 months', isPartitioned: false },
];
