/**
 * Alerts of attacks follow their incidents: opened in the transaction that stores the detection, resolved in the one that
 * stores the recovery. Without news an incident is stale and its alert stays open (NET-3.2).
 */
import { type IncidentChange, titleOfIncident } from '#monitor/incidents/index.ts';
import { nameSensors } from '#monitor/views/sensor-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Subject } from './episode.ts';
import { enqueueOpened, enqueueResolved } from './outbox-store.ts';
import { findOpenBySubject, insertEpisode, resolveEpisode, updateDetails } from './store.ts';

type Incident = IncidentChange['incident'];

/** Brings the episodes of changed incidents up to date, in the transaction that changes them. */
export async function noteIncidents(trx: Queryable, changes: readonly IncidentChange[]): Promise<void> {
  const attacks = changes.filter(({ incident }) => incident.severity === 'attack');
  if (attacks.length === 0) return;
  const open = await findOpenBySubject(
    trx,
    'attack_detected',
    attacks.map(({ incident }) => keyOf(incident)),
  );
  const sensors = await nameSensors(
    trx,
    attacks.flatMap(({ incident }) => sensorOf(incident) ?? []),
  );
  for (const change of attacks) {
    const hostName = sensors.get(sensorOf(change.incident) ?? 0)?.hostName ?? null;
    await noteOne(trx, change, open.get(keyOf(change.incident)) ?? null, hostName);
  }
}

/** The sensor whose capture is the target: many hosts have an interface of that name. */
const sensorOf = ({ target, targetKey }: Incident): number | null =>
  target.kind === 'capture' ? Number(targetKey.split(' ')[1]) : null;

const keyOf = ({ id }: Incident) => `incident:${id}`;

async function noteOne(
  trx: Queryable,
  { incident, before }: IncidentChange,
  openId: number | null,
  hostName: string | null,
): Promise<void> {
  const isGone = incident.isWithdrawn || incident.mergedInto !== null;
  if (incident.state === 'recovered' || isGone) {
    if (openId === null) return;
    await resolveEpisode(trx, openId, isGone ? 'removed' : 'recovered');
    return enqueueResolved(trx, openId);
  }
  const subject = subjectOf(incident, hostName);
  if (openId !== null) return updateDetails(trx, openId, subject.details);
  // One that was acknowledged elsewhere, or that is only stale again, is no new attack.
  if (before !== null && before.state !== 'recovered') return;
  const id = await insertEpisode(trx, subject);
  if (id !== null) await enqueueOpened(trx, id);
}

function subjectOf(incident: Incident, hostName: string | null): Subject {
  const { measured, target, direction, isDrill } = incident;
  return {
    kind: 'attack_detected',
    key: keyOf(incident),
    siteId: incident.siteId,
    name: hostName === null ? target.value : `${target.value} of ${hostName}`,
    verdict: 'bad',
    details: {
      incident_id: incident.id,
      title: titleOfIncident({ ...incident, isDrill: false }),
      class: incident.class,
      target_kind: target.kind,
      target: target.value,
      direction,
      detected_at: new Date(incident.detectedAtMs).toISOString(),
      peak_bps: measured.peak.bps,
      peak_pps: measured.peak.pps,
      drill: isDrill,
    },
  };
}
