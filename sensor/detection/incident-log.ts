/**
 * Gives incidents their revisions and makes them durable: one at the detection, one every ten seconds, one at the recovery.
 *
 * The list of open incidents is written first, then the observations go to the spool. So an incident whose revision is in
 * the spool is always in the list, and a sensor that is killed between the two goes on with the next revision.
 */
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { AttackClass } from '#contracts/attack-classes.ts';
import {
  type IncidentObservation,
  type IncidentTarget,
  type IncidentVector,
  incidentSecondsMax,
  incidentsMax,
  vectorsMax,
} from '#contracts/sensor-api/detection.ts';
import type { Incident } from '#sensor/detector/index.ts';
import { type HostTime, offsetOf } from '#sensor/host-time/index.ts';
import type { Spool } from '#sensor/spool/index.ts';
import type { OpenIncidentsFile, StoredIncident } from './open-incidents-file.ts';

const heartbeatMs = 10_000;
/** While the monitor is away uploads wait; then seconds are told less often, so that they leave room for minutes. */
const crowdedUploads = 360;
const crowdedHeartbeatMs = 60_000;
/** Incidents that are due a little later go with those that are due. */
const gatherMs = 600;

interface Entry {
  capture: string;
  revision: number;
  toldAtMs: number;
  deviceKey: string;
  isEnded: boolean;
}

/** What one capture has to tell. */
export interface CaptureIncidents {
  capture: string;
  open: readonly Incident[];
  recovered: readonly Incident[];
  abandoned: readonly Incident[];
  /** The device of a target, blank when it is not known. */
  deviceKeyOf(incident: Incident): string;
  /** The target as the monitor is told of it. */
  targetOf(incident: Incident): IncidentTarget;
}

interface IncidentLogDeps {
  spool: Pick<Spool, 'append' | 'status'>;
  file: OpenIncidentsFile;
  hostTime: HostTime;
  reporter: Reporter;
  /** A capture file of this incident is recorded or waits. */
  hasEvidence(id: string): boolean;
  onCommitted(): void;
}

export class IncidentLog {
  readonly #deps: IncidentLogDeps;
  readonly #entries = new WeakMap<Incident, Entry>();
  /** Observations that no disk has taken yet, by incident. */
  #unstored = new Map<string, IncidentObservation>();
  #isFailing = false;

  constructor(deps: IncidentLogDeps) {
    this.#deps = deps;
  }

  /** Incidents that were open when the sensor stopped. */
  readOpen(): StoredIncident[] {
    return this.#deps.file.read();
  }

  /** An incident of the run before goes on. */
  restore({ incident, capture, revision, deviceKey }: StoredIncident): void {
    const toldAtMs = Number.NEGATIVE_INFINITY;
    this.#entries.set(incident, { capture, revision, toldAtMs, deviceKey, isEnded: false });
  }

  /** Tells what is due. `nowMs` is monotonic. */
  tell(captures: readonly CaptureIncidents[], nowMs: number): void {
    const due = captures.flatMap((one) => this.#dueOf(one, nowMs));
    for (const one of due) {
      const before = this.#unstored.get(one.id);
      this.#unstored.set(one.id, before ? joinObservations(before, one) : one);
    }
    if (this.#unstored.size > 0) this.#store(captures);
  }

  #dueOf(one: CaptureIncidents, nowMs: number): IncidentObservation[] {
    const open = one.open.filter((incident) => this.#isDue(incident, nowMs));
    return [
      ...open.map((incident) => this.#observe(one, incident, nowMs, false)),
      ...one.recovered.map((incident) => this.#observe(one, incident, nowMs, false)),
      ...one.abandoned.map((incident) => this.#observe(one, incident, nowMs, true)),
    ];
  }

  #isDue(incident: Incident, nowMs: number): boolean {
    const entry = this.#entries.get(incident);
    if (!entry || entry.isEnded) return true;
    const isCrowded = this.#deps.spool.status().pendingUploads > crowdedUploads;
    return nowMs - entry.toldAtMs >= (isCrowded ? crowdedHeartbeatMs : heartbeatMs) - gatherMs;
  }

  #observe(one: CaptureIncidents, incident: Incident, nowMs: number, isAbandoned: boolean) {
    const known = this.#entries.get(incident);
    const entry = known ?? { capture: one.capture, revision: 0, toldAtMs: 0, deviceKey: '', isEnded: false };
    if (!known) this.#entries.set(incident, entry);
    entry.revision += 1;
    entry.toldAtMs = nowMs;
    entry.deviceKey = one.deviceKeyOf(incident) || entry.deviceKey;
    entry.isEnded = isAbandoned || incident.state === 'recovered';
    this.#logChange(incident, entry, isAbandoned);
    const target = one.targetOf(incident);
    return observe(incident, {
      ...entry,
      target,
      isAbandoned,
      hasEvidence: this.#deps.hasEvidence(incident.id),
    });
  }

  #logChange(incident: Incident, { capture, revision }: Entry, isAbandoned: boolean): void {
    const { reporter } = this.#deps;
    const { class: name, direction, severity, target, drill } = incident;
    const about = {
      capture,
      target: target.mac ?? target.value,
      direction,
      class: name,
      severity,
      ...(drill && { drill }),
    };
    if (isAbandoned)
      reporter.info('an incident is not observed any more: its target is not protected', about);
    else if (incident.state === 'recovered') reporter.info('an incident has recovered', about);
    else if (revision === 1) reporter.warn('an incident was detected', about);
  }

  #store(captures: readonly CaptureIncidents[]): void {
    const { spool, file, hostTime, reporter, onCommitted } = this.#deps;
    const now = hostTime.read();
    const stampedBy = {
      bootId: hostTime.bootId,
      offsetMs: offsetOf(now),
      since: Math.floor(now.wallMs / 60_000) * 60,
    };
    try {
      file.write(captures.flatMap(({ open }) => open.map((incident) => this.#stored(incident))));
      const waiting = [...this.#unstored.values()];
      for (let at = 0; at < waiting.length; at += incidentsMax) {
        const incidents = waiting.slice(at, at + incidentsMax);
        spool.append([], [], { records: { incidents }, ...(hostTime.bootId === '' ? {} : { stampedBy }) });
        for (const { id } of incidents) this.#unstored.delete(id);
      }
    } catch (error) {
      if (!this.#isFailing)
        reporter.error('incidents can not be stored, trying again', { why: describeError(error) });
      this.#isFailing = true;
      return;
    }
    if (this.#isFailing) reporter.info('incidents are stored again');
    this.#isFailing = false;
    onCommitted();
  }

  #stored(incident: Incident): StoredIncident {
    const { capture, revision, deviceKey } = this.#entries.get(incident)!;
    return { capture, revision, deviceKey, incident };
  }
}

// An incident of the detector as it is told to the monitor.

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
function observe(incident: Incident, by: ObservedBy): IncidentObservation {
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
function joinObservations(earlier: IncidentObservation, later: IncidentObservation): IncidentObservation {
  const seconds = [...earlier.seconds, ...later.seconds].slice(-incidentSecondsMax);
  return { ...later, seconds };
}
