/** How statements read an incident (`incidents i`). */
import { sql } from 'kysely';
import type { Incident } from './incident.ts';

const ms = (column: string) => sql`(extract(epoch from ${sql.ref(column)}) * 1000)::float8`;

export const incidentColumns = sql`i.id, i.site_id as "siteId", i.target_kind as "targetKind", i.target as "targetValue",
  i.target_key as "targetKey", i.direction, i.severity, i.class, i.is_drill as "isDrill", i.revision, i.state,
  ${ms('i.started_at')} as "startedAtMs", ${ms('i.detected_at')} as "detectedAtMs",
  ${ms('i.last_observed_at')} as "lastObservedAtMs", ${ms('i.recovered_at')} as "recoveredAtMs", i.measured,
  i.correlation_id as "correlationId", i.merged_into as "mergedInto", i.is_withdrawn as "isWithdrawn", i.actions`;

export type IncidentRow = Omit<Incident, 'target'> & {
  targetKind: Incident['target']['kind'];
  targetValue: string;
};

export function toIncident({ targetKind, targetValue, ...row }: IncidentRow): Incident {
  return { ...row, target: { kind: targetKind, value: targetValue } };
}
