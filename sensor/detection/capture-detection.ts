/** Detection on one capture: what its threads are to count, and the detector that gets their seconds. */
import type { DetectorMinute, IncidentTarget } from '#contracts/sensor-api/detection.ts';
import type { CountingOrder, MemberSecond } from '#sensor/attack-counters/index.ts';
import {
  type DetectionOrder,
  type FilteredSecond,
  type Incident,
  LiveDetector,
  type WatchedCapture,
} from '#sensor/detector/index.ts';
/** What the collection sees of a capture's detection. */
export class CaptureDetection {
  readonly name: string;
  readonly #nowMs: () => number;
  readonly #uplink: WatchedCapture | null;
  #detector: LiveDetector | null = null;
  #counting: CountingOrder | null = null;
  #listener: (order: CountingOrder | null) => void = () => {};
  #owners: ReadonlyMap<string, string> = new Map();
  /** An address of each MAC of the inventory. */
  #addresses: ReadonlyMap<string, string> = new Map();
  #members = 1;
  /** Steps that each thread found, and how many of them the detector knows. */
  readonly #steps = new Map<number, number>();
  #stepsTaken = 0;

  constructor(name: string, nowMs: () => number, uplink: WatchedCapture | null) {
    this.name = name;
    this.#uplink = uplink;
    this.#nowMs = nowMs;
  }

  get detector(): LiveDetector | null {
    return this.#detector;
  }

  /** Detects by this order from now on; null: not at all. */
  follow(order: DetectionOrder | null): void {
    if (!order) this.#detector = null;
    else if (this.#detector) this.#detector.follow(order);
    else this.#detector = new LiveDetector(order, this.name, this.#uplink);
    const owners = order?.scope.owners ?? [];
    this.#addresses = new Map(owners.flatMap(({ address, macs }) => macs.map((mac) => [mac, address])));
    if (order && this.#counting?.number === order.number) return;
    if (!order && !this.#counting) return;
    this.#counting = order && {
      number: order.number,
      scope: order.scope,
      groups: order.groups.map(({ prefixes }) => prefixes),
      limits: order.book.sets.map(({ hostLimits }) => hostLimits),
    };
    this.#listener(this.#counting);
  }

  deviceKeyOf({ target }: Incident): string {
    if (target.mac !== undefined) return `${this.name}|${target.mac}`;
    return target.kind === 'host' ? (this.#owners.get(target.value) ?? '') : '';
  }

  /** Who sends from addresses that are not its own is told by one that it has; where none is known, by the capture. */
  targetOf({ target: { kind, value, mac } }: Incident): IncidentTarget {
    const address = mac === undefined ? undefined : this.#addresses.get(mac);
    return address === undefined ? { kind, value } : { kind: 'host', value: address };
  }

  tick(): void {
    this.#detector?.tick(this.#members, this.#nowMs());
  }

  /** Called with what the threads are to count from now on, and at once with what they are to count now. */
  onOrder(listener: (order: CountingOrder | null) => void): void {
    this.#listener = listener;
    listener(this.#counting);
  }

  /** Seconds of a thread, of `members`. */
  take(seconds: readonly MemberSecond[], members: number): void {
    this.#members = members;
    for (const one of seconds) this.#detector?.take(one, members, this.#nowMs());
  }

  /** A thread found that the clock was set. */
  noteStep(member: number, byMs: number): void {
    const steps = (this.#steps.get(member) ?? this.#stepsTaken) + 1;
    this.#steps.set(member, steps);
    if (steps <= this.#stepsTaken) return;
    this.#stepsTaken = steps;
    this.#detector?.noteStep(byMs, this.#nowMs());
  }

  /** What the filter at this uplink did in a second that is over. */
  noteFiltered(unixSecond: number, rows: readonly FilteredSecond[]): void {
    this.#detector?.noteFiltered(unixSecond, rows);
  }

  /** The capture listens no more. */
  noteFailure(): void {
    this.#steps.clear();
    this.#detector?.noteFailure(this.#nowMs());
  }

  /** What there is to say of a minute that is over; null without detection. */
  takeMinute(minute: number): DetectorMinute | null {
    return this.#detector?.takeMinute(minute) ?? null;
  }

  /** The devices that protected addresses belong to, as of the last minute. */
  noteOwners(owners: ReadonlyMap<string, string>): void {
    this.#owners = owners;
  }
}
