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
import type { GapReason, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { WindowReport } from '#sensor/capture/index.ts';
import type { LocalAddresses, MemberMinute, ReadySource, WorkerInput } from './capture-messages.ts';
import type { CaptureSpec } from './capture-spec.ts';
import { createMemberThread, type MemberThread } from './member-thread.ts';
import { mergeMembers } from './merge-minutes.ts';
import { type LocalWindow, mergeWindows } from './merge-windows.ts';

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
}

export interface CaptureGroup {
  readonly name: string;
  /** Opens the interface. Returns the error, or null. `keepTrying` retries. */
  open(): Promise<CodedError | null>;
  /** Retries every few seconds after `open` failed. */
  keepTrying(why: CodedError): void;
  /** Sets the local addresses. Frames count from the first call on. */
  setLocal(local: LocalAddresses): void;
  state(): CaptureState;
  /** Resolves after the last reports have arrived. */
  stop(): Promise<void>;
}

/** Creates the group; no thread runs before `open`. */
export function createCaptureGroup(options: CaptureGroupOptions): CaptureGroup {
  const { spec, clock, reporter } = options;
  const stopping = new AbortController();
  let source = spec.source;
  let members: MemberThread[] = [];
  let local: LocalAddresses | null = null;
  let protectedAddresses = new Set<string>();
  let opened: ReadySource | null = null;
  let isListening = false;
  let trouble: CodedError | null = null;
  /** All members are ready to receive messages. */
  let isOpen = false;
  let endedEarly: CodedError | null = null;
  let listeningSince: number[] = [];
  const minutes = new Map<number, MemberMinute[]>();
  const windows = new Map<number, WindowReport[]>();

  function createMember(fanout: 'new' | number | null): MemberThread {
    const input: WorkerInput = {
      name: spec.name,
      role: spec.role,
      source: source.kind === 'live' ? { ...source, fanout } : source,
      share: options.share,
      windowMs: options.windowMs,
      windowApplicationsMax: 50,
      ...(spec.outerNames ? { outerNames: spec.outerNames } : {}),
    };
    const member = createMemberThread({
      input,
      clock,
      onListening: noteListening,
      onReports: takeMinutes,
      onWindows: takeWindows,
      onEnded: (why) => {
        if (isOpen) void fail(why);
        else endedEarly = why;
      },
    });
    members.push(member);
    return member;
  }

  /** The capture listens when its last member listens. */
  function noteListening(sinceMs: number, offsetMs: number): void {
    listeningSince.push(sinceMs);
    if (listeningSince.length < members.length) return;
    isListening = true;
    options.onListening(Math.max(...listeningSince), offsetMs);
    listeningSince = [];
  }

  function takeMinutes(reports: MemberMinute[]): void {
    for (const report of reports) {
      const parts = collect(minutes, report.minute.minute, report);
      if (parts.length >= members.length) flushMinute(report.minute.minute);
    }
  }

  function flushMinute(minute: number): void {
    const parts = minutes.get(minute);
    if (!parts) return;
    minutes.delete(minute);
    const reports = parts.map((part) => part.minute);
    const merged = mergeMembers(reports, spec.role, options.foreignMacs());
    const reason = parts.find((part) => part.reason)?.reason ?? null;
    // Without a member's report, the minute lacks that member's flows.
    const isShort = parts.length < members.length;
    if (isShort) merged.observedMs = Math.min(merged.observedMs, 59_999);
    options.onMinute(merged, isShort ? (reason ?? 'capture_failed') : reason);
  }

  function takeWindows(reports: WindowReport[]): void {
    for (const report of reports) {
      const parts = collect(windows, report.startedAtMs, report);
      if (parts.length >= members.length) flushWindow(report.startedAtMs);
    }
    // Drop old windows that stay incomplete.
    for (const startedAtMs of windows.keys()) if (windows.size > 3) windows.delete(startedAtMs);
  }

  function flushWindow(startedAtMs: number): void {
    const parts = windows.get(startedAtMs)!;
    windows.delete(startedAtMs);
    options.onWindow(mergeWindows(parts, spec, (address) => protectedAddresses.has(address)));
  }

  async function open(): Promise<CodedError | null> {
    members = [];
    listeningSince = [];
    endedEarly = null;
    const count = source.kind === 'live' ? (spec.members ?? 1) : 1;
    try {
      const first = await createMember(count > 1 ? 'new' : null).start();
      opened = first;
      // Only the packet ring supports fanout.
      if (count > 1 && first.fanoutGroup !== null) {
        const group = first.fanoutGroup;
        await Promise.all(Array.from({ length: count - 1 }, () => createMember(group).start()));
      }
      if (endedEarly) throw endedEarly;
    } catch (error) {
      trouble = error as CodedError;
      await Promise.all(members.map((member) => member.stop()));
      members = [];
      return trouble;
    }
    trouble = null;
    isOpen = true;
    if (opened.fallback !== null && opened.method === 'tcpdump') {
      reporter.warn('capture runs through tcpdump, which costs more and can not count merged packets', {
        capture: spec.name,
        why: opened.fallback,
      });
    } else if (!opened.countsSegments) {
      reporter.warn('packets merged by offload are counted as one', { capture: spec.name });
    }
    if (local) for (const member of members) member.setLocal(local);
    return null;
  }

  async function fail(why: CodedError): Promise<void> {
    if (stopping.signal.aborted) return;
    isOpen = false;
    trouble = why;
    isListening = false;
    await Promise.all(members.map((member) => member.stop()));
    for (const minute of [...minutes.keys()].sort((a, b) => a - b)) flushMinute(minute);
    windows.clear();
    options.onFailed();
    // Counting merged packets as one is better than losing them.
    const isHeader = why.code === 'capture.offload_header';
    if (isHeader && source.kind === 'live') source = { ...source, wantsOffloadHeader: false };
    await reopen(why, isHeader ? 0 : reopenEveryMs);
  }

  async function reopen(why: CodedError, firstWaitMs: number): Promise<void> {
    reporter.error('capture failed, retrying', { capture: spec.name, why: why.message });
    for (let waitMs = firstWaitMs; !stopping.signal.aborted; waitMs = reopenEveryMs) {
      await clock.wait(waitMs, stopping.signal);
      if (stopping.signal.aborted) return;
      if ((await open()) === null) {
        reporter.info('capture listens again', { capture: spec.name });
        return;
      }
    }
  }

  return {
    name: spec.name,
    open,
    keepTrying(why) {
      void reopen(why, reopenEveryMs);
    },
    setLocal(next) {
      local = next;
      protectedAddresses = new Set(next.addresses);
      if (isOpen) for (const member of members) member.setLocal(next);
    },
    state: () => ({
      name: spec.name,
      role: spec.role,
      isListening,
      method: opened?.method ?? null,
      members: Math.max(1, members.length),
      countsSegments: opened?.countsSegments ?? false,
      why: trouble?.message ?? opened?.fallback ?? null,
    }),
    async stop() {
      stopping.abort();
      await Promise.all(members.map((member) => member.stop()));
      for (const minute of [...minutes.keys()].sort((a, b) => a - b)) flushMinute(minute);
    },
  };
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
