/**
 * Attack detection of the running sensor: follows the plan, gets the seconds of all captures, and tells the monitor.
 *
 * Guarantees: nothing is detected and nothing sent unless the plan has a `detection_version` (NET-9.2). An incident is on
 * disk before it is sent, and keeps its id through restarts. It ends by a recovery that was observed, never by missing data;
 * one whose target is not protected any more gets a last revision of unknown coverage. Traffic that several captures
 * see is judged by each of them alone.
 *
 * The packets are counted in `sensor/attack-counters` and judged in `sensor/detector`.
 */

import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { formatPrefix, type Prefix, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { AttackClass } from '#contracts/attack-classes.ts';
import type { AttackDirection, IncidentSeverity } from '#contracts/incidents.ts';
import { countingRule, type DetectorEpoch, epochsMax } from '#contracts/sensor-api/detection.ts';
import {
  createThresholdBook,
  type DetectionOrder,
  type Incident,
  type ThresholdGroup,
  type Thresholds,
  type WatchedCapture,
} from '#sensor/detector/index.ts';
import type { Evidence } from '#sensor/evidence/index.ts';
import type { HostTime } from '#sensor/host-time/index.ts';
import type { SensorPlan } from '#sensor/plan/index.ts';
import { epochRecords } from '#sensor/records/index.ts';
import type { RecordSource, Spool } from '#sensor/spool/index.ts';
import { CaptureDetection } from './capture-detection.ts';
import { IncidentLog } from './incident-log.ts';
import { createOpenIncidentsFile, type StoredIncident } from './open-incidents-file.ts';

interface Protection {
  prefixes: string[];
  addresses: string[];
  thresholds: Thresholds;
  groups: readonly ThresholdGroup[];
}

/** Epochs: what was protected, by which thresholds, since when. Each goes to the monitor once, with the next minutes. */
class Epochs implements RecordSource<'epochs'> {
  readonly kind = epochRecords;
  #key = '';
  #current: DetectorEpoch | null = null;
  #waiting: DetectorEpoch[] = [];

  /** The epoch of this protection, and whether it begins now. */
  of({ prefixes, addresses, thresholds, groups }: Protection, nowMs: number): { id: string; isNew: boolean } {
    // JSON has no infinity; a metric that is not judged reads as null.
    const key = JSON.stringify([prefixes, addresses, thresholds, groups]);
    if (this.#current && key === this.#key) return { id: this.#current.id, isNew: false };
    this.#key = key;
    this.#current = {
      ...{ id: randomUUID(), sinceMs: Math.round(nowMs) },
      ...{ prefixes: [...addresses, ...prefixes], countingRule },
    };
    this.#waiting.push(this.#current);
    if (this.#waiting.length > epochsMax) this.#waiting.shift();
    return { id: this.#current.id, isNew: true };
  }

  /** Nothing is detected any more. */
  end(): void {
    this.#current = null;
    this.#waiting = [];
  }

  ready(): DetectorEpoch[] {
    return [...this.#waiting];
  }

  committed(epochs: readonly DetectorEpoch[]): void {
    const done = new Set(epochs);
    this.#waiting = this.#waiting.filter((one) => !done.has(one));
  }
}

export type { CaptureDetection } from './capture-detection.ts';

const tickMs = 250;

export interface DetectionOptions {
  captures: readonly string[];
  /** Those that are judged as a whole too. */
  uplinks: readonly WatchedCapture[];
  stateDirectory: string;
  spool: Pick<Spool, 'append' | 'status'>;
  clock: Clock;
  hostTime: HostTime;
  reporter: Reporter;
  /** Records packets of attacks; absent where none are wanted. */
  evidence?: Pick<Evidence, 'note' | 'has'>;
  /** Called when incidents lie in the spool. */
  onCommitted(): void;
}

/** An incident that is going on, for people on this host. */
export interface ActiveIncident {
  capture: string;
  target: string;
  direction: AttackDirection;
  class: AttackClass;
  severity: IncidentSeverity;
  drill: boolean;
  startedAtMs: number;
  bps: number;
  pps: number;
}

type FollowedPlan = Pick<SensorPlan, 'protectedAddresses' | 'detection' | 'owners'>;

export class Detection implements Part {
  readonly name = 'detection';
  /** The epochs that go with the next minutes. */
  readonly epochs = new Epochs();
  readonly #options: DetectionOptions;
  readonly #captures: ReadonlyMap<string, CaptureDetection>;
  readonly #log: IncidentLog;
  readonly #stopping = new AbortController();
  #number = 0;
  #owners = '';
  #running: Promise<void> = Promise.resolve();
  /** Incidents of the run before, until the first plan. */
  #stored: StoredIncident[] | null = null;

  constructor(options: DetectionOptions) {
    const { captures, uplinks, clock, stateDirectory, reporter } = options;
    this.#options = options;
    const uplinkOf = (name: string) => uplinks.find((uplink) => uplink.name === name) ?? null;
    this.#captures = new Map(
      captures.map((name) => [name, new CaptureDetection(name, clock.nowMs, uplinkOf(name))]),
    );
    const hasEvidence = (id: string) => options.evidence?.has(id) ?? false;
    this.#log = new IncidentLog({
      ...options,
      hasEvidence,
      file: createOpenIncidentsFile(stateDirectory, reporter),
    });
  }

  async start(): Promise<void> {
    this.#running = this.#run();
  }

  /** The captures have stopped: tells what they saw last. Incidents stay open for the next run. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#tell();
  }

  /** Applies a plan. */
  follow(plan: FollowedPlan): void {
    const order = this.#orderOf(plan);
    for (const capture of this.#captures.values()) capture.follow(order);
    if (order) this.#restore();
    else this.epochs.end();
  }

  /** The detection of a capture of `captures`. */
  of(capture: string): CaptureDetection {
    return this.#captures.get(capture)!;
  }

  active(): ActiveIncident[] {
    return [...this.#captures.values()].flatMap((capture) =>
      (capture.detector?.openIncidents() ?? []).map((one) => ({
        capture: capture.name,
        target: capture.targetOf(one).value,
        direction: one.direction,
        class: one.class,
        severity: one.severity,
        drill: one.drill,
        startedAtMs: one.startedAt,
        bps: one.current?.bps ?? 0,
        pps: one.current?.pps ?? 0,
      })),
    );
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      for (const capture of this.#captures.values()) capture.tick();
      this.#tell();
      // Seconds of the kernel's counters end with those of the clock.
      await clock.wait(tickMs - (clock.nowMs() % tickMs), this.#stopping.signal);
    }
  }

  #tell(): void {
    const captures = [...this.#captures.values()].flatMap((capture) => {
      const { name, detector } = capture;
      if (!detector) return [];
      const deviceKeyOf = (incident: Incident) => capture.deviceKeyOf(incident);
      const targetOf = (incident: Incident) => capture.targetOf(incident);
      const open = detector.openIncidents();
      return [{ capture: name, open, ...detector.takeEnded(), deviceKeyOf, targetOf }];
    });
    // Before the first plan, and without detection, nothing is known of incidents that may go on.
    if (captures.length > 0) this.#options.evidence?.note(captures);
    this.#log.tell(captures, this.#options.clock.monotonicMs());
  }

  #orderOf({ protectedAddresses, detection, owners }: FollowedPlan) {
    if (!detection) return null;
    const { thresholds, groups, additionalPrefixes, drills } = detection;
    const scope = { prefixes: additionalPrefixes, addresses: protectedAddresses };
    const epoch = this.epochs.of({ ...scope, thresholds, groups }, this.#options.clock.nowMs());
    const ownersNow = JSON.stringify(owners);
    if (epoch.isNew || ownersNow !== this.#owners) this.#number += 1;
    this.#owners = ownersNow;
    const order: DetectionOrder = {
      number: this.#number,
      epochId: epoch.id,
      scope: { ...scope, owners },
      groups,
      book: createThresholdBook(thresholds, groups),
      drills,
      isProtected: protectionOf(protectedAddresses, additionalPrefixes),
    };
    return order;
  }

  /** Incidents of the run before go on; those of a capture that is gone are abandoned by the first one. */
  #restore(): void {
    this.#stored ??= this.#log.readOpen();
    const stored = this.#stored;
    this.#stored = [];
    const [anyCapture] = this.#captures.values();
    for (const one of stored) {
      this.#log.restore(one);
      const capture = this.#captures.get(one.capture);
      if (capture) capture.detector?.restore(one.incident);
      else anyCapture?.detector?.abandon(one.incident);
    }
    const going = new Set(
      [...this.#captures.values()].flatMap(({ detector }) => detector?.openIncidents() ?? []),
    );
    const kept = stored.filter(({ incident }) => going.has(incident)).length;
    if (kept > 0) this.#options.reporter.info('incidents of the run before go on', { incidents: kept });
  }
}

/** Tells whether a target is protected: a host that is, or a prefix that has something that is. */
function protectionOf(addresses: readonly string[], prefixes: readonly string[]) {
  const exact = new Set(addresses);
  const ranges = prefixes.flatMap((text) => parsePrefix(text) ?? []);
  const covers = (text: string) => {
    const bytes = parseAddress(text);
    return bytes !== null && ranges.some((range) => prefixContains(range, bytes));
  };
  return ({ kind, value }: Incident['target']): boolean => {
    if (kind === 'host') return exact.has(value) || covers(value);
    const prefix = parsePrefix(value);
    if (!prefix) return false;
    return covers(formatPrefix(prefix).split('/')[0]!) || hasPartOf(prefix, addresses, ranges);
  };
}

function hasPartOf(prefix: Prefix, addresses: readonly string[], ranges: readonly Prefix[]): boolean {
  return (
    ranges.some((range) => prefixContains(prefix, range.bytes)) ||
    addresses.some((text) => prefixContains(prefix, parseAddress(text)!))
  );
}
