/** Detection on one capture: what its threads are to count, and the detector that gets their seconds. */
import type { DetectorMinute, IncidentTarget } from '#contracts/sensor-api/detection.ts';
import type {
  CountingOrder,
  KindReading,
  MemberSecond,
  WatchedScope,
} from '#sensor/attack-counters/index.ts';
import {
  type DetectionOrder,
  type FilteredSecond,
  type Incident,
  KernelWatch,
  LiveDetector,
  type WatchedCapture,
} from '#sensor/detector/index.ts';

const quarterMs = 250;

/** Reads an interface's counters in the kernel. */
export interface KindSource {
  addressOf(slot: number): readonly [number, number, number, number, number];
  peek(): { packets: number; bytes: number };
  read(isKept?: boolean): KindReading;
  restart(): void;
}

/** What the collection sees of a capture's detection. */
export class CaptureDetection {
  readonly name: string;
  readonly #nowMs: () => number;
  readonly #uplink: WatchedCapture | null;
  #detector: LiveDetector | null = null;
  #order: DetectionOrder | null = null;
  /** The kernel's counters of this capture, and who is watched by them; null where the threads count everything. */
  #reader: KindSource | null = null;
  #watch: KernelWatch | null = null;
  /** The second and the quarter of it that are open for the kernel. */
  #kernelSecond = -1;
  #quarter = -1;
  #watchListener: (scope: WatchedScope) => void = () => {};
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
    this.#order = order;
    this.#followKernel();
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
    this.#readKernel();
    this.#detector?.tick(this.#memberCount, this.#nowMs());
  }

  /** Counts by this reader of the kernel from now on; null: by the threads alone. */
  countBy(reader: KindSource | null): void {
    this.#reader = reader;
    this.#watch = null;
    this.#followKernel();
  }

  /** Called with whose packets the threads are to tell apart, whenever that changes; null: everyone's, as at first. */
  onWatch(listener: (scope: WatchedScope) => void): void {
    this.#watchListener = listener;
  }

  /** Those who hand over seconds. */
  get #memberCount(): number {
    return this.#members + (this.#watch ? 1 : 0);
  }

  #followKernel(): void {
    const [reader, detector, order] = [this.#reader, this.#detector, this.#order];
    if (reader && detector && order) {
      if (this.#watch) this.#watch.follow(order);
      else this.#watch = new KernelWatch(reader, order, detector);
      this.#restartKernel();
    } else {
      this.#watch = null;
      this.#watchListener(null);
    }
  }

  /** The next second is the first one. */
  #restartKernel(): void {
    this.#reader?.restart();
    this.#kernelSecond = -1;
  }

  /** Every second all of it, and each quarter of a second whether there is much more than before. */
  #readKernel(): void {
    const [reader, watch, detector] = [this.#reader, this.#watch, this.#detector];
    if (!reader || !watch || !detector) return;
    const nowMs = this.#nowMs();
    const second = Math.floor(nowMs / 1000);
    const quarter = Math.floor((nowMs % 1000) / quarterMs);
    try {
      if (second !== this.#kernelSecond) {
        const part = watch.close(reader.read(), second - 1);
        if (second > this.#kernelSecond) detector.take(part, this.#memberCount, nowMs);
      } else if (quarter !== this.#quarter && watch.isSurge(reader.peek(), (nowMs % 1000) / 1000))
        watch.look(reader.read(false), second);
    } catch {
      // The part that opened the counters says why they can not be read any more.
      this.countBy(null);
      return;
    }
    this.#kernelSecond = second;
    this.#quarter = quarter;
    const change = watch.takeChange();
    if (change) this.#watchListener(change.scope);
  }

  /** Called with what the threads are to count from now on, and at once with what they are to count now. */
  onOrder(listener: (order: CountingOrder | null) => void): void {
    this.#listener = listener;
    listener(this.#counting);
  }

  /** Seconds of a thread, of `members`. */
  take(seconds: readonly MemberSecond[], members: number): void {
    this.#members = members;
    for (const one of seconds) this.#detector?.take(one, this.#memberCount, this.#nowMs());
  }

  /** A thread found that the clock was set. */
  noteStep(member: number, byMs: number): void {
    const steps = (this.#steps.get(member) ?? this.#stepsTaken) + 1;
    this.#steps.set(member, steps);
    if (steps <= this.#stepsTaken) return;
    this.#stepsTaken = steps;
    this.#detector?.noteStep(byMs, this.#nowMs());
    this.#followKernel();
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
