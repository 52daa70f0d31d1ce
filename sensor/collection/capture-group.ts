/**
 * One capture: one thread, or several that share the interface by fanout. Their reports are merged here, so that later
 * code does not depend on the number of threads.
 *
 * A failure of one member fails the capture: all members end, the open minute is reported with its observed part, and
 * the capture is reopened every few seconds. The minutes in between are gaps.
 */
import type { Clock } from '#common/clock/index.ts';
import type { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { CountingOrder, WatchedScope } from '#sensor/attack-counters/index.ts';
import type { LocalScope, OwnScan, WindowReport } from '#sensor/capture/index.ts';
import type { CaptureDetection } from '#sensor/detection/index.ts';
import type { CaptureEvidence } from '#sensor/evidence/index.ts';
import type { WantedRecording } from '#sensor/recording/index.ts';
import type {
  CaptureSpec,
  LocalAddresses,
  MemberMinute,
  ReadySource,
  WorkerInput,
} from './capture-messages.ts';
import { createMemberThread, type MemberThread } from './member-thread.ts';
import { type LocalWindow, mergeMembers, mergeWindows } from './merge.ts';

const reopenEveryMs = 2000;

export interface CaptureGroupOptions {
  spec: CaptureSpec;
  /** Fraction of one capture's tables for each member. */
  share: number;
  windowMs: number;
  clock: Clock;
  reporter: Reporter;
  /** MACs of this host and of its routers: they own no address (NET-2.2.9). */
  foreignMacs(): ReadonlySet<string>;
  /**
   * Called when the capture begins to listen, with the offset of its clock to the host's uptime; called again after
   * each clock step.
   */
  onListening(sinceMs: number, offsetMs: number): void;
  onMinute(minute: TelemetryMinute, reason: GapReason | null): void;
  onWindow(window: LocalWindow): void;
  onFailed(): void;
  /** Where seconds go; absent where nothing is detected. */
  detection?: CaptureDetection | undefined;
  /** Where recorded packets of attacks go; absent where none are wanted. */
  evidence?: CaptureEvidence | undefined;
}

/** State of a capture, for people. */
export interface CaptureState {
  name: string;
  role: 'uplink' | 'bridge';
  isListening: boolean;
  /** Null until it was opened. */
  method: ReadySource['method'] | null;
  members: number;
  countsSegments: boolean;
  /** Why a fallback method is used, or why it does not listen. */
  why: string | null;
  /** Why totals are not counted in the kernel; null where they are, absent from a sensor before 0.2.0. */
  whyNotKernel?: string | null;
}

export class CaptureGroup {
  readonly #options: CaptureGroupOptions;
  readonly #reports: MemberReports;
  readonly #stopping = new AbortController();
  #source: CaptureSpec['source'];
  #members: MemberThread[] = [];
  #local: LocalAddresses | null = null;
  #opened: ReadySource | null = null;
  #isListening = false;
  #trouble: CodedError | null = null;
  /** All members are ready to receive messages. */
  #isOpen = false;
  /** Why a member ended before all were ready. */
  #endedEarly: CodedError | null = null;
  #listeningSince: number[] = [];
  #counting: CountingOrder | null = null;
  #watched: WatchedScope = null;
  #wanted: readonly WantedRecording[] = [];
  #ownScans: readonly OwnScan[] = [];
  /** Threads that count frames. */
  readonly #begun = new WeakSet<MemberThread>();

  constructor(options: CaptureGroupOptions) {
    this.#options = options;
    this.#source = options.spec.source;
    const { spec, foreignMacs, onMinute, onWindow, detection } = options;
    const membersNow = () => this.#members.length;
    this.#reports = new MemberReports({ spec, foreignMacs, onMinute, onWindow, membersNow, detection });
    detection?.onOrder((order) => this.#setCounting(order));
    detection?.onWatch((scope) => this.#watch(scope));
    options.evidence?.onWanted((wanted) => this.#record(wanted));
  }

  get name(): string {
    return this.#options.spec.name;
  }

  /** Opens the interface. Returns the error, or null. `keepTrying` retries. */
  async open(): Promise<CodedError | null> {
    this.#members = [];
    this.#listeningSince = [];
    this.#endedEarly = null;
    try {
      await this.#startMembers();
      if (this.#endedEarly) throw this.#endedEarly;
    } catch (error) {
      this.#trouble = error as CodedError;
      await this.#stopMembers();
      this.#members = [];
      return this.#trouble;
    }
    this.#trouble = null;
    this.#isOpen = true;
    this.#warnOfFallback(this.#opened!);
    if (this.#local) for (const member of this.#members) this.#begin(member, this.#local);
    return null;
  }

  /** Retries every few seconds after `open` failed. */
  keepTrying(why: CodedError): void {
    void this.#reopen(why, reopenEveryMs);
  }

  /** Sets the local addresses. Frames count from the first call on. */
  setLocal(local: LocalAddresses): void {
    this.#local = local;
    this.#reports.follow(local);
    if (this.#isOpen) for (const member of this.#members) this.#begin(member, local);
  }

  #begin(member: MemberThread, local: LocalAddresses): void {
    const hasBegun = this.#begun.has(member);
    member.setLocal(local);
    if (!hasBegun && this.#counting) member.setCounting(this.#counting);
    if (!hasBegun && this.#watched) member.watch(this.#watched);
    if (!hasBegun && this.#wanted.length > 0) member.record(this.#wanted);
    if (!hasBegun && this.#ownScans.length > 0) member.setOwnScans(this.#ownScans);
    this.#begun.add(member);
  }

  #setCounting(order: CountingOrder | null): void {
    this.#counting = order;
    if (this.#isOpen)
      for (const member of this.#members) if (this.#begun.has(member)) member.setCounting(order);
  }

  #watch(scope: WatchedScope): void {
    this.#watched = scope;
    if (this.#isOpen) for (const member of this.#members) if (this.#begun.has(member)) member.watch(scope);
  }

  /** Keeps the traffic of the sensor's own scans apart from now on. */
  setOwnScans(scans: readonly OwnScan[]): void {
    this.#ownScans = scans;
    if (this.#isOpen)
      for (const member of this.#members) if (this.#begun.has(member)) member.setOwnScans(scans);
  }

  #record(wanted: readonly WantedRecording[]): void {
    this.#wanted = wanted;
    if (this.#isOpen) for (const member of this.#members) if (this.#begun.has(member)) member.record(wanted);
  }

  state(): CaptureState {
    const { name, role } = this.#options.spec;
    return {
      name,
      role,
      isListening: this.#isListening,
      method: this.#opened?.method ?? null,
      members: Math.max(1, this.#members.length),
      countsSegments: this.#opened?.countsSegments ?? false,
      why: this.#trouble?.message ?? this.#opened?.fallback ?? null,
    };
  }

  /** Resolves after the last reports have arrived. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#stopMembers();
    this.#reports.flushMinutes();
    this.#options.evidence?.noteEnded();
  }

  async #startMembers(): Promise<void> {
    const count = this.#source.kind === 'live' ? (this.#options.spec.members ?? 1) : 1;
    const first = await this.#createMember(count > 1 ? 'new' : null).start();
    this.#opened = first;
    // Only the packet ring supports fanout.
    if (count > 1 && first.fanoutGroup !== null) {
      const group = first.fanoutGroup;
      await Promise.all(Array.from({ length: count - 1 }, () => this.#createMember(group).start()));
    }
  }

  #createMember(fanout: 'new' | number | null): MemberThread {
    const { spec, share, windowMs, clock } = this.#options;
    const source = this.#source;
    const input: WorkerInput = {
      name: spec.name,
      role: spec.role,
      source: source.kind === 'live' ? { ...source, fanout } : source,
      share,
      windowMs,
      windowApplicationsMax: 50,
      ...(spec.outerNames ? { outerNames: spec.outerNames } : {}),
    };
    const member = createMemberThread({
      input,
      clock,
      onListening: (sinceMs, offsetMs) => this.#noteListening(sinceMs, offsetMs),
      onReports: (reports) => this.#reports.takeMinutes(reports),
      onWindows: (windows) => this.#reports.takeWindows(windows),
      onSeconds: (seconds) => this.#options.detection?.take(seconds, this.#members.length),
      onStepped: (byMs) => this.#options.detection?.noteStep(this.#members.indexOf(member), byMs),
      onRecorded: (recorded) => this.#options.evidence?.take(recorded, this.#members.length),
      onEnded: (why) => {
        if (this.#isOpen) void this.#fail(why);
        else this.#endedEarly = why;
      },
    });
    this.#members.push(member);
    return member;
  }

  async #stopMembers(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }

  /** The capture listens when its last member listens. */
  #noteListening(sinceMs: number, offsetMs: number): void {
    this.#listeningSince.push(sinceMs);
    if (this.#listeningSince.length < this.#members.length) return;
    this.#isListening = true;
    this.#options.onListening(Math.max(...this.#listeningSince), offsetMs);
    this.#listeningSince = [];
  }

  #warnOfFallback({ method, fallback, countsSegments }: ReadySource): void {
    const { reporter, spec } = this.#options;
    if (fallback !== null && method === 'tcpdump') {
      reporter.warn('capture runs through tcpdump, which costs more and can not count merged packets', {
        capture: spec.name,
        why: fallback,
      });
    } else if (!countsSegments) {
      reporter.warn('packets merged by offload are counted as one', { capture: spec.name });
    }
  }

  async #fail(why: CodedError): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#isOpen = false;
    this.#trouble = why;
    this.#isListening = false;
    await this.#stopMembers();
    this.#reports.flushMinutes();
    this.#reports.dropWindows();
    this.#options.detection?.noteFailure();
    this.#options.evidence?.noteEnded();
    this.#options.onFailed();
    // Counting merged packets as one is better than losing them.
    const isHeader = why.code === 'capture.offload_header';
    if (isHeader && this.#source.kind === 'live')
      this.#source = { ...this.#source, wantsOffloadHeader: false };
    await this.#reopen(why, isHeader ? 0 : reopenEveryMs);
  }

  async #reopen(why: CodedError, firstWaitMs: number): Promise<void> {
    const { reporter, clock, spec } = this.#options;
    const { signal } = this.#stopping;
    reporter.error('capture failed, retrying', { capture: spec.name, why: why.message });
    for (let waitMs = firstWaitMs; !signal.aborted; waitMs = reopenEveryMs) {
      await clock.wait(waitMs, signal);
      if (signal.aborted) return;
      if ((await this.open()) === null) {
        reporter.info('capture listens again', { capture: spec.name });
        return;
      }
    }
  }
}

// Joins what the members of one capture report of the same minute, and of the same live window.

/** Windows that wait for further members, which are late on a busy host; older ones are dropped. */
const windowsMax = 12;

interface MemberReportsDeps
  extends Pick<CaptureGroupOptions, 'spec' | 'foreignMacs' | 'onMinute' | 'onWindow' | 'detection'> {
  /** How many members report now. */
  membersNow(): number;
}

export class MemberReports {
  readonly #deps: MemberReportsDeps;
  readonly #minutes = new Map<number, MemberMinute[]>();
  readonly #windows = new Map<number, WindowReport[]>();
  #protectedAddresses: ReadonlySet<string> = new Set();
  #serverMacs: ReadonlySet<string> = new Set();

  constructor(deps: MemberReportsDeps) {
    this.#deps = deps;
  }

  follow({ addresses, owners = [] }: LocalScope): void {
    this.#protectedAddresses = new Set(addresses);
    this.#serverMacs = new Set(owners.flatMap(({ macs }) => macs));
  }

  takeMinutes(reports: readonly MemberMinute[]): void {
    for (const report of reports) {
      const parts = collect(this.#minutes, report.minute.minute, report);
      if (parts.length >= this.#deps.membersNow()) this.#flushMinute(report.minute.minute);
    }
  }

  takeWindows(reports: readonly WindowReport[]): void {
    for (const report of reports) {
      const parts = collect(this.#windows, report.startedAtMs, report);
      if (parts.length >= this.#deps.membersNow()) this.#flushWindow(report.startedAtMs);
    }
    for (const startedAtMs of this.#windows.keys())
      if (this.#windows.size > windowsMax) this.#windows.delete(startedAtMs);
  }

  /** No member reports any more: passes on all minutes as they are. */
  flushMinutes(): void {
    for (const minute of [...this.#minutes.keys()].sort((a, b) => a - b)) this.#flushMinute(minute);
  }

  dropWindows(): void {
    this.#windows.clear();
  }

  #flushMinute(minute: number): void {
    const { spec, membersNow, foreignMacs, onMinute } = this.#deps;
    const parts = this.#minutes.get(minute)!;
    this.#minutes.delete(minute);
    const reports = parts.map((part) => part.minute);
    const merged = mergeMembers(reports, spec.role, foreignMacs(), this.#serverMacs);
    const reason = parts.find((part) => part.reason)?.reason ?? null;
    // Without a member's report, the minute lacks that member's flows.
    const isShort = parts.length < membersNow();
    if (isShort) merged.observedMs = Math.min(merged.observedMs, 59_999);
    this.#addDetector(merged);
    onMinute(merged, isShort ? (reason ?? 'capture_failed') : reason);
  }

  #addDetector(merged: TelemetryMinute): void {
    const { detection } = this.#deps;
    const detector = detection?.takeMinute(merged.minute);
    if (!detector) return;
    merged.detector = detector;
    const owned = merged.hosts.filter(({ address }) => this.#protectedAddresses.has(address));
    detection!.noteOwners(new Map(owned.map(({ address, deviceKey }) => [address, deviceKey])));
  }

  #flushWindow(startedAtMs: number): void {
    const { spec, onWindow } = this.#deps;
    const parts = this.#windows.get(startedAtMs)!;
    this.#windows.delete(startedAtMs);
    onWindow(mergeWindows(parts, spec, (address) => this.#protectedAddresses.has(address)));
  }
}

function collect<T>(parts: Map<number, T[]>, key: number, part: T): T[] {
  const known = parts.get(key);
  if (known) {
    known.push(part);
    return known;
  }
  const made = [part];
  parts.set(key, made);
  return made;
}
