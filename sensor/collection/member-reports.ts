/** Joins what the members of one capture report of the same minute, and of the same live window. */
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { LocalScope, WindowReport } from '#sensor/capture/index.ts';
import type { CaptureDetection } from '#sensor/detection/index.ts';
import type { MemberMinute } from './capture-messages.ts';
import type { CaptureSpec } from './capture-spec.ts';
import { mergeMembers } from './merge-minutes.ts';
import { type LocalWindow, mergeWindows } from './merge-windows.ts';

/** Windows that wait for further members, which are late on a busy host; older ones are dropped. */
const windowsMax = 12;

interface MemberReportsDeps {
  spec: CaptureSpec;
  /** How many members report now. */
  membersNow(): number;
  /** MACs of this host and of its routers: they own no address (NET-2.2.9). */
  foreignMacs(): ReadonlySet<string>;
  onMinute(minute: TelemetryMinute, reason: GapReason | null): void;
  onWindow(window: LocalWindow): void;
  detection?: CaptureDetection | undefined;
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
