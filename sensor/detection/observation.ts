/** An incident of the detector as it is told to the monitor. */
import type { AttackClass } from '#contracts/attack-classes.ts';
import {
  type IncidentObservation,
  type IncidentTarget,
  type IncidentVector,
  incidentSecondsMax,
  vectorsMax,
} from '#contracts/sensor-api/detection.ts';
import type { Incident } from '#sensor/detector/index.ts';

export interface ObservedBy {
  capture: string;
  revision: number;
  deviceKey: string;
  target: IncidentTarget;
  /** The target is not protected any more, so nothing more will be observed. */
  isAbandoned: boolean;
  hasEvidence: boolean;
}

/** The observation; the seconds of the incident are in it, and no longer in the incident. */
export function observe(incident: Incident, by: ObservedBy): IncidentObservation {
  const seconds = incident.seconds.splice(0).sort((a, b) => a.at - b.at);
  const { peak, current, state } = incident;
  const isSeen = seconds.length > 0 && !by.isAbandoned;
  return {
    id: incident.id,
    revision: by.revision,
    capture: by.capture,
    target: by.target,
    direction: incident.direction,
    class: incident.class,
    severity: incident.severity,
    vectors: incident.vectors.slice(0, vectorsMax).map((vector) => ({
      class: vector.class,
      packetsShare: vector.packets_share,
      bytesShare: vector.bytes_share,
      ports: vector.ports,
      ...detailsOf(incident, vector.class),
    })),
    state,
    startedAtMs: Math.round(incident.startedAt),
    detectedAtMs: Math.round(incident.detectedAt),
    lastObservedAtMs: Math.round(Math.max(incident.startedAt, incident.lastObservedAt)),
    recoveredAtMs: incident.recoveredAt === null ? null : Math.round(incident.recoveredAt),
    current: state === 'recovered' ? null : (current ?? { bps: 0, pps: 0 }),
    peak: { bps: peak.bps, bpsAtMs: Math.round(peak.bpsAt), pps: peak.pps, ppsAtMs: Math.round(peak.ppsAt) },
    totals: incident.totals,
    coverage: isSeen ? incident.coverage : 'unknown',
    deviceKey: by.deviceKey,
    threshold: incident.threshold,
    ...(incident.reason && { reason: incident.reason }),
    ...(incident.filter && { filter: incident.filter }),
    remotes: incident.remotes,
    seconds: seconds.slice(-incidentSecondsMax).map(({ at, bps, pps }) => ({ atMs: at, bps, pps })),
    drill: incident.drill,
    hasEvidence: by.hasEvidence,
    ...(incident.target.mac !== undefined && { isSpoofed: true }),
  };
}

function detailsOf({ vectorTimes }: Incident, name: AttackClass): Pick<IncidentVector, 'details'> {
  const times = vectorTimes.find((one) => one.class === name);
  if (!times) return {};
  const { startedAt, lastObservedAt, peak, sourcePorts, protocols } = times;
  return {
    details: {
      ...{ sourcePorts, protocols, peak },
      ...{ startedAtMs: Math.round(startedAt), lastObservedAtMs: Math.round(lastObservedAt) },
    },
  };
}

/** One observation for two of the same incident: the later revision stands for both, with the seconds of both. */
export function joinObservations(
  earlier: IncidentObservation,
  later: IncidentObservation,
): IncidentObservation {
  const seconds = [...earlier.seconds, ...later.seconds].slice(-incidentSecondsMax);
  return { ...later, seconds };
}
