/**
 * Opens, updates and ends incidents from the counters of closed seconds. It has no clock and reads no packet: the caller
 * passes every second once, with the seconds before it.
 */
import type { IncidentSeverity } from '#contracts/incidents.ts';
import { fastTriggerRatio, type Trigger } from '#contracts/sensor-api/detection.ts';
import { Bin } from '#sensor/attack-counters/index.ts';
import { amountsByClass, type Verdict } from './classify.ts';
import { type Incident, newIncident, type Observation, OpenIncident, type Target } from './incident.ts';
import { noteDetail, Observed, observationOf, verdictOf, volumeVerdict } from './observed.ts';
import { reasonOf } from './reason.ts';
import type { ClosedSecond, TargetWindow } from './target-window.ts';
import type { DirectionName } from './thresholds.ts';
import type { Amount } from './traffic.ts';
import { firstSecondOf, triggerOf, windowSeconds } from './trigger.ts';

export interface JudgeOptions {
  /** Keep every incident in `incidents`. False: only open ones and those that may be reopened are kept. */
  keepsAll?: boolean;
  /** Called for each second of traffic that counts in the totals of an incident. */
  onAmount?(incident: Incident, at: number, amount: Amount): void;
}

/** A second below this ratio decides nothing. */
const worthLooking = 0.3;
/** So many loud seconds apart from each other within this time are an attack in pulses. */
const pulsesMin = 3;
const pulsesMs = 60_000;
const pulseApartMs = 2000;
/** Time after a recovery in which the same attack continues the same incident. */
const reopenMs = 300_000;
/** Incidents that are kept, and of those that are open or may be reopened; further ones are counted. */
const incidentsMax = 10_000;
const openMax = 2000;

export class Judge {
  /** Every incident, in the order of detection. */
  readonly incidents: Incident[] = [];
  /** Number of incidents without room. */
  incidentsLost = 0;

  readonly #options: JudgeOptions;
  readonly #open = new Map<string, OpenIncident>();
  readonly #recovered = new Map<string, OpenIncident>();

  #ended: Incident[] = [];
  /** Seconds of hosts over a threshold that belong to no incident yet. */
  readonly #pending = new Map<string, number[]>();
  /** Loud seconds of the last minute that are apart, of targets without an incident. */
  readonly #pulses = new Map<string, number[]>();

  constructor(options: JudgeOptions = {}) {
    this.#options = options;
  }

  /** Judges a closed second of every target with traffic worth judging. Targets with open incidents may be missing. */
  close(second: ClosedSecond, windows: Iterable<TargetWindow>): void {
    for (const [key, seconds] of this.#pending)
      if (second.at - seconds.at(-1)! > windowSeconds * 1000) this.#pending.delete(key);
    for (const [key, pulses] of this.#pulses) {
      while (pulses.length > 0 && second.at - pulses[0]! > pulsesMs) pulses.shift();
      if (pulses.length === 0) this.#pulses.delete(key);
    }
    const seen = new Set<OpenIncident>();
    for (const window of windows) this.#judge(second, window, seen);
    for (const open of this.#open.values()) {
      if (seen.has(open)) continue;
      if (!second.isWhole || second.isLossy) open.noteGap();
      if (!second.isWhole) continue;
      const nothing = { at: second.at, amount: { packets: 0, bytes: 0 }, ratio: 0, ratioMax: 0 };
      open.observe(nothing, !second.isLossy);
    }
    this.#keepRecovered(second.judgedAt);
  }

  /** A part of the time was not observed. */
  noteGap(): void {
    for (const open of this.#open.values()) open.noteGap();
  }

  /** The clock was set by so much. */
  shiftTimes(ms: number): void {
    for (const open of [...this.#open.values(), ...this.#recovered.values()]) open.shiftTimes(ms);
  }

  /** Continues an incident that was open when the sensor stopped. */
  restore(incident: Incident): void {
    const { target, direction, severity, drill } = incident;
    this.#open.set(keyOf(target, direction, severity, drill), new OpenIncident(incident));
  }

  /** Forgets an incident that is not observed any more. */
  drop(incident: Incident): void {
    for (const [key, open] of this.#open) if (open.incident === incident) this.#open.delete(key);
  }

  /** How many seconds of this time may still turn out to belong to an attack. */
  pendingIn(fromMs: number, toMs: number): number {
    const seconds = new Set([...this.#pending.values(), ...this.#pulses.values()].flat());
    return [...seconds].filter((at) => at >= fromMs && at < toMs).length;
  }

  /** The open incidents, in the order of detection. */
  openIncidents(): Incident[] {
    return Array.from(this.#open.values(), ({ incident }) => incident);
  }

  /** The incidents that recovered since the last call. */
  takeRecovered(): Incident[] {
    const ended = this.#ended;
    this.#ended = [];
    return ended;
  }

  /** True while the target has an open incident of severity attack. */
  isAttacked(target: Target, direction: DirectionName): boolean {
    return this.#open.has(keyOf(target, direction, 'attack'));
  }

  /** True while the target has an open incident. */
  hasOpen(target: Target, direction: DirectionName): boolean {
    return this.isAttacked(target, direction) || this.#open.has(keyOf(target, direction, 'info'));
  }

  /** Number of open incidents. */
  get openCount(): number {
    return this.#open.size;
  }

  #judge(second: ClosedSecond, window: TargetWindow, seen: Set<OpenIncident>): void {
    const { target, direction } = window;
    const observed = new Observed(second, window);
    const isDrill = window.isDrill ?? false;
    for (const severity of ['attack', 'info'] as const) {
      const open = this.#open.get(keyOf(target, direction, severity, isDrill));
      if (!open) continue;
      seen.add(open);
      this.#update(open, observed);
    }
    if (!second.isWhole || this.#open.has(keyOf(target, direction, 'attack', isDrill))) return;
    const { last } = observed;
    if (target.kind === 'host' && !isDrill && observed.attackAt(last) >= 1)
      push(this.#pending, keyOf(target, direction, 'attack'), second.at);
    const pulses = this.#pulsesOf(observed);
    const found = observed.attackAt(last) >= worthLooking ? observed.attackTrigger : null;
    const trigger = found ?? (pulses.length >= pulsesMin ? 'pulses' : null);
    // A prefix is many servers: much ordinary traffic of all of them is no incident. A link that it fills is one.
    const isVolume = !trigger && target.kind !== 'prefix' && observed.volumeAt(last) >= worthLooking;
    const ofVolume = isVolume ? triggerOf(observed.volume) : null;
    let begun: OpenIncident | null = null;
    if (trigger) {
      const verdict = verdictOf(observed, observed.attack);
      begun = this.#begin(observed, verdict, observed.attack, trigger, pulses[0]);
    } else if (ofVolume) begun = this.#begin(observed, volumeVerdict(observed), observed.volume, ofVolume);
    if (begun) seen.add(begun);
  }

  /**
   * The loud seconds of the last minute that are apart, once the window has another one. It is looked for among the seconds before the last
   * one: of that it is not known yet which pairs in it will converse.
   */
  #pulsesOf(observed: Observed): readonly number[] {
    const { second, window } = observed;
    const before = observed.last - 1;
    if (before < 0 || observed.attackAt(before) < fastTriggerRatio) return [];
    const key = keyOf(window.target, window.direction, 'attack', window.isDrill);
    const pulses = this.#pulses.get(key) ?? [];
    this.#pulses.set(key, pulses);
    const at = second.at - 1000;
    if (pulses.length === 0 || at - pulses.at(-1)! >= pulseApartMs) pulses.push(at);
    return pulses;
  }

  /** Opens an incident, or the same one again. Returns it; null without room, or when one is open. `since`: when it began, if before the window. */
  #begin(
    observed: Observed,
    verdict: Verdict,
    ratios: readonly number[],
    trigger: Trigger,
    since?: number,
  ): OpenIncident | null {
    const { second, window } = observed;
    const { target, direction, seconds } = window;
    const key = keyOf(target, direction, verdict.severity, window.isDrill ?? false);
    this.#pending.delete(key);
    this.#pulses.delete(key);
    if (this.#open.has(key)) return null;
    const recoveredKey = `${key} ${verdict.class}`;
    const before = this.#recovered.get(recoveredKey);
    if (before) {
      this.#recovered.delete(recoveredKey);
      before.reopen();
      this.#open.set(key, before);
      this.#update(before, observed);
      return before;
    }
    const { keepsAll = true } = this.#options;
    const isFull = keepsAll
      ? this.incidents.length >= incidentsMax
      : this.#open.size + this.#recovered.size >= openMax;
    if (isFull) {
      this.incidentsLost += 1;
      return null;
    }
    const first = firstSecondOf(ratios);
    const timeOf = (i: number) => second.at - (seconds.length - 1 - i) * 1000;
    const startedAt = Math.min(since ?? second.at, timeOf(first));
    const incident = newIncident(target, direction, verdict, startedAt, second.judgedAt);
    incident.drill = window.isDrill ?? false;
    incident.threshold = observed.exceeded(verdict.class === 'high_volume');
    incident.reason = { trigger, ...reasonOf(observed, ratios) };
    const open = new OpenIncident(incident);
    if (keepsAll) this.incidents.push(incident);
    this.#open.set(key, open);
    for (let i = first; i < seconds.length; i += 1)
      this.#observe(open, observationOf(observed, i, incident, timeOf(i)), observed, i);
    noteDetail(incident, observed);
    open.follow(verdict);
    return open;
  }

  #update(open: OpenIncident, observed: Observed): void {
    const { incident } = open;
    const { second } = observed;
    if (!second.isWhole) {
      open.noteGap();
      return;
    }
    const { last } = observed;
    const observation = observationOf(observed, last, incident, second.at);
    if (second.isLossy || observed.window.seconds[last]!.counts[Bin.unknown]! > 0) open.noteGap();
    if (this.#observe(open, observation, observed, last)) noteDetail(incident, observed);
    if (incident.class === 'high_volume' || observation.ratio < worthLooking) return;
    const verdict = verdictOf(observed, observed.attack);
    if (verdict.severity === incident.severity && verdict.vectors.length > 0)
      open.follow(verdict, observed.window.isFiltered);
  }

  /** Adds a second of the window. Returns true when it was the strongest so far. */
  #observe(open: OpenIncident, observation: Observation, observed: Observed, i: number): boolean {
    const { incident } = open;
    const { packets } = incident.totals;
    const isStrongest = open.observe(observation, !observed.second.isLossy);
    if (incident.totals.packets === packets) return isStrongest;
    this.#options.onAmount?.(incident, observation.at, observation.amount);
    if (incident.class !== 'high_volume')
      open.noteVectors(observation.at, amountsByClass(observed.partAt(i)));
    return isStrongest;
  }

  /** Moves recovered incidents aside, and forgets them when the same attack would be a new incident. */
  #keepRecovered(now: number): void {
    for (const [key, open] of this.#open) {
      if (open.incident.state === 'active') continue;
      this.#open.delete(key);
      if (!(this.#options.keepsAll ?? true)) this.#ended.push(open.incident);
      this.#recovered.set(`${key} ${open.incident.class}`, open);
    }
    for (const [key, { incident }] of this.#recovered) {
      const age = now - incident.recoveredAt!;
      if (age > reopenMs || age < 0) this.#recovered.delete(key);
    }
  }
}

function push(lists: Map<string, number[]>, key: string, value: number): void {
  const list = lists.get(key);
  if (!list) lists.set(key, [value]);
  else if (list.push(value) > windowSeconds) list.shift();
}

function keyOf(target: Target, direction: DirectionName, severity: IncidentSeverity, isDrill = false) {
  return `${target.kind} ${target.value} ${target.mac ?? ''} ${direction} ${severity}${isDrill ? ' drill' : ''}`;
}
