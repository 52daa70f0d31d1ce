/**
 * Brings incidents up to date with their observations, in the transaction that changed these.
 *
 * Everything that may be of one incident is read again and divided by `correlate.ts`. An incident keeps its id while it has
 * observations. Where two turn out to be one, the older goes on and the other is merged into it: it is never observed
 * again, and ends when that one ends.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ChangedAddress } from '#monitor/placements/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { combine, divide, staleMs } from './correlate.ts';
import { correlateSites } from './correlate-sites.ts';
import type { Incident, Observation, Transition } from './incident.ts';
import type { IncidentChange, IncidentsDeps } from './index.ts';
import { checkReleased, judgeOwnership } from './judge-ownership.ts';
import * as store from './store.ts';

/** `rowIds`: observations that changed. `formerIds`: incidents that may have lost one. Call it with the sites locked. */
export async function regroup(
  deps: Pick<IncidentsDeps, 'events' | 'onChange'>,
  trx: Queryable,
  rowIds: readonly number[],
  formerIds: readonly string[] = [],
): Promise<IncidentChange[]> {
  const nowMs = await readNowMs(trx);
  const siblings = await store.listRowsOfIncidents(trx, formerIds);
  const observations = await store.listRelated(trx, [...new Set([...rowIds, ...siblings])]);
  const known = observations.flatMap(({ incidentId }) => incidentId ?? []);
  const held = await store.listIncidents(trx, [...new Set([...known, ...formerIds])]);
  const isReleased = await checkReleased(trx, observations, nowMs);
  const parts = [...Map.groupBy(observations, keyText).values()].flatMap(divide);
  const { placed, orphans } = place(parts, held);
  const assigned = placed.flatMap(({ id, part }) =>
    part.flatMap(({ rowId, incidentId }) => (incidentId === id ? [] : [{ rowId, incidentId: id }])),
  );
  const changes = [
    ...placed.flatMap(({ id, part, before, merged }) => {
      const view = combine(part, nowMs, isReleased);
      return changesOf(id, part, before, merged, view, held);
    }),
    ...orphans.flatMap(withdraw),
  ];
  if (changes.length === 0 && assigned.length === 0) return [];
  await store.writeIncidents(
    trx,
    changes.map(({ incident }) => incident),
  );
  await store.assignObservations(trx, assigned);
  const moved = changes.filter(mayCorrelate).map(({ incident }) => incident.id);
  if (moved.length > 0) await correlateSites(trx, moved);
  await store.insertTransitions(
    trx,
    changes.flatMap(({ incident, transitions }) =>
      transitions.map((one) => ({ ...one, incidentId: incident.id })),
    ),
  );
  await recordEvents(deps, trx, changes);
  await deps.onChange?.(trx, changes);
  return changes;
}

/** True where what correlations follow from has changed; a heartbeat changes none of it. */
function mayCorrelate({ incident, before }: IncidentChange): boolean {
  if (incident.severity !== 'attack' || incident.isDrill) return false;
  const basisOf = ({ startedAtMs, class: name, measured, mergedInto, isWithdrawn }: Incident) => [
    ...[startedAtMs, name, mergedInto, isWithdrawn],
    measured.vectors.map((vector) => vector.class),
  ];
  return before === null || !isDeepStrictEqual(basisOf(before), basisOf(incident));
}

const keyText = ({ siteId, targetKey, direction, severity, isDrill }: Observation) =>
  JSON.stringify([siteId, targetKey, direction, severity, isDrill]);

interface Placed {
  id: string;
  part: readonly Observation[];
  before: Incident | null;
  /** Incidents that turned out to be of this one. */
  merged: readonly Incident[];
}

/** Which incident each part is: the oldest that one of its observations was of, as far as no other part has it. */
function place(parts: readonly (readonly Observation[])[], held: readonly Incident[]) {
  const free = new Map(held.filter(({ mergedInto }) => mergedInto === null).map((one) => [one.id, one]));
  const placed: Placed[] = [];
  const merging: [Placed, Incident][] = [];
  // Parts with the earliest start choose first; each takes one, and what nothing is left of is merged.
  for (const part of parts) {
    const own = [...free.values()].filter(({ id }) => part.some(({ incidentId }) => incidentId === id));
    const [before = null] = own;
    if (before) free.delete(before.id);
    placed.push({ id: before?.id ?? randomUUID(), part, before, merged: [] });
  }
  for (const one of placed)
    for (const incident of [...free.values()])
      if (one.part.some(({ incidentId }) => incidentId === incident.id)) {
        free.delete(incident.id);
        merging.push([one, incident]);
      }
  for (const one of placed)
    one.merged = merging.flatMap(([into, incident]) => (into === one ? [incident] : []));
  return { placed, orphans: [...free.values()].filter(({ isWithdrawn }) => !isWithdrawn) };
}

function changesOf(
  id: string,
  part: readonly Observation[],
  before: Incident | null,
  merged: readonly Incident[],
  view: ReturnType<typeof combine>,
  held: readonly Incident[],
): IncidentChange[] {
  const { siteId, target, targetKey, direction, severity, isDrill } = part[0]!;
  const key = { siteId, target, targetKey, direction, severity, isDrill };
  const fresh = { revision: 0, correlationId: null, mergedInto: null, actions: [] };
  const after: Incident = { ...(before ?? fresh), ...key, ...view, id, isWithdrawn: false };
  const joined = part.filter(({ incidentId }) => incidentId !== id);
  const own = changed(before, after, describeChange(before, after, joined, merged));
  // What was merged into it earlier or now has its state from here on.
  const followers = [...merged, ...held.filter(({ mergedInto }) => mergedInto === id)];
  return [...own, ...followers.flatMap((one) => changed(one, follow(one, after), []))];
}

/** A merged incident ends with the one that goes on; its own rates and totals are counted there. */
function follow(one: Incident, after: Incident): Incident {
  const { state, lastObservedAtMs, recoveredAtMs } = after;
  const measured = { ...one.measured, current: null };
  return { ...one, state, lastObservedAtMs, recoveredAtMs, measured, mergedInto: after.id };
}

/** Without an observation that counts there is nothing to recover: it stays as it was last seen. */
function withdraw(one: Incident): IncidentChange[] {
  const state = one.state === 'active' ? 'stale' : one.state;
  const measured = { ...one.measured, current: null };
  const after: Incident = { ...one, state, measured, isWithdrawn: true };
  return changed(one, after, describeChange(one, after, [], []));
}

/** One change with a higher revision, or none where the incident looks as it did. */
function changed(
  before: Incident | null,
  after: Incident,
  transitions: IncidentChange['transitions'],
): IncidentChange[] {
  if (before !== null && isDeepStrictEqual(before, after)) return [];
  return [{ incident: { ...after, revision: after.revision + 1 }, before, transitions }];
}

/** Every attack leaves one event (NET-6). */
async function recordEvents(
  { events }: Pick<IncidentsDeps, 'events'>,
  trx: Queryable,
  changes: readonly IncidentChange[],
): Promise<void> {
  for (const { incident, before } of changes) {
    if (before !== null || incident.severity !== 'attack') continue;
    const { id, siteId, target, direction, isDrill, detectedAtMs, measured } = incident;
    await events.record(trx, {
      kind: 'ddos_detected',
      siteId,
      details: {
        incident_id: id,
        target_kind: target.kind,
        target: target.value,
        direction,
        class: incident.class,
        detected_at: new Date(detectedAtMs).toISOString(),
        peak_bps: measured.peak.bps,
        peak_pps: measured.peak.pps,
        drill: isDrill,
      },
    });
  }
}

/**
 * Judges observations of these addresses again, in the transaction that changed their placements. An incident that was made
 * by another node's sensor is withdrawn; one that was kept as foreign counts from now on.
 */
export async function rejudgeAddresses(
  deps: Pick<IncidentsDeps, 'events' | 'onChange'>,
  trx: Queryable,
  changed: readonly ChangedAddress[],
): Promise<void> {
  if (changed.length === 0) return;
  const rows = await store.listRowsOfAddresses(trx, changed);
  if (rows.length === 0) return;
  await store.lockSites(trx, [...new Set(rows.map(({ siteId }) => siteId))]);
  const verdicts = await judgeOwnership(trx, rows);
  const judged = rows.map((row, i) => ({ ...row, ...verdicts[i]!, was: row.isForeign }));
  const formerIds = await store.listIncidentsOf(
    trx,
    judged.map(({ rowId }) => rowId),
  );
  // Of one observation each verdict has at most one row; the higher revision stays.
  const lower = [...Map.groupBy(judged, ({ sensorId, said }) => `${sensorId} ${said.id}`).values()].flatMap(
    (rowsOfOne) => {
      const [first, second] = rowsOfOne.toSorted((a, b) => b.said.revision - a.said.revision);
      const isSame = first!.isForeign === first!.was && second?.isForeign === second?.was;
      return second === undefined || isSame ? [] : [second.rowId];
    },
  );
  await store.deleteObservations(trx, lower);
  const kept = judged.filter(({ rowId }) => !lower.includes(rowId));
  await store.changeVerdicts(
    trx,
    kept.filter(({ isForeign, was, key, targetKey }) => isForeign !== was || key.targetKey !== targetKey),
  );
  // All of them: where an incident's target has left the node it may be over.
  const own = kept.filter(({ isForeign }) => !isForeign).map(({ rowId }) => rowId);
  await regroup(deps, trx, own, formerIds);
}

/** `joined`: observations that were not of the incident before. */
function describeChange(
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
