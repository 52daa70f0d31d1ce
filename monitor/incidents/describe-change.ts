/** What happened to an incident between two views of it. */
import { staleMs } from './correlate.ts';
import type { Incident, Observation, Transition } from './incident.ts';

/** `joined`: observations that were not of the incident before. */
export function describeChange(
  before: Incident | null,
  after: Incident,
  joined: readonly Observation[],
  merged: readonly Incident[],
): Transition[] {
  const changes: Transition[] = [];
  const note = (kind: Transition['kind'], atMs: number, details: Transition['details'] = {}) =>
    changes.push({ kind, atMs, details });
  if (before === null) {
    const { bps, pps } = after.measured.current ?? after.measured.peak;
    note('detected', after.detectedAtMs, { class: after.class, bps, pps });
  }
  const first = before === null ? firstOf(joined) : null;
  for (const one of joined)
    if (one !== first)
      note('joined', one.said.detectedAtMs, { sensor_id: one.sensorId, capture: one.said.capture });
  for (const one of merged) note('merged', one.startedAtMs, { incident_id: one.id });
  if (before !== null && before.class !== after.class)
    note('class_changed', after.lastObservedAtMs, { from: before.class, to: after.class });
  if (after.isWithdrawn && !before?.isWithdrawn) note('withdrawn', after.lastObservedAtMs);
  noteState(before, after, note);
  return changes;
}

function noteState(
  before: Incident | null,
  after: Incident,
  note: (kind: Transition['kind'], atMs: number) => void,
): void {
  const from = before?.state ?? 'active';
  if (from === after.state || after.isWithdrawn) return;
  if (after.state === 'recovered') note('recovered', after.recoveredAtMs!);
  else if (from === 'recovered') note('reopened', after.lastObservedAtMs);
  if (after.state === 'stale') note('stale', after.lastObservedAtMs + staleMs);
  else if (after.state === 'active' && from === 'stale') note('observed_again', after.lastObservedAtMs);
}

function firstOf(observations: readonly Observation[]): Observation | null {
  return (
    observations.toSorted(
      (a, b) => a.said.detectedAtMs - b.said.detectedAtMs || a.sensorId - b.sensorId || a.rowId - b.rowId,
    )[0] ?? null
  );
}
