/** Messages between a capture's thread and the sensor's main thread. */
import type { GapReason } from '#contracts/minute-reasons.ts';
import type { CountingOrder, MemberSecond, WatchedScope } from '#sensor/attack-counters/index.ts';
import type { LocalScope, MinuteReport, OwnScan, WindowReport } from '#sensor/capture/index.ts';
import type { CaptureMethod, SourceSpec } from '#sensor/packet-source/index.ts';
import type { RecordedPackets, WantedRecording } from '#sensor/recording/index.ts';

/** Local addresses and their owners. */
export type LocalAddresses = LocalScope;

/** Task of a thread: one member of one capture. */
export interface WorkerInput {
  name: string;
  role: CaptureRole;
  source: SourceSpec;
  /** Fraction of one capture's tables for this member. */
  share: number;
  windowMs: number;
  windowApplicationsMax: number;
  outerNames?: readonly string[];
}

export type ToWorker =
  /** Starts counting frames. */
  | { kind: 'begin'; local: LocalAddresses }
  | { kind: 'local'; local: LocalAddresses }
  /** Counts for the detector from now on; null: no more. */
  | { kind: 'count'; order: CountingOrder | null }
  /** Counts for the detector what these addresses send and receive; null: all that is protected. */
  | { kind: 'watch'; scope: WatchedScope }
  /** Records the packets of these attacks from now on, and of no others. */
  | { kind: 'record'; wanted: readonly WantedRecording[] }
  /** Keeps the traffic of the sensor's own scans apart from now on. */
  | { kind: 'own-scans'; scans: readonly OwnScan[] }
  | { kind: 'stop' };

/** An open source. */
export interface ReadySource {
  method: CaptureMethod;
  countsSegments: boolean;
  fanoutGroup: number | null;
  /** Why a fallback method is used. */
  fallback: string | null;
}

/** A closed minute of one member; `reason` says why it is incomplete. */
export interface MemberMinute {
  minute: MinuteReport;
  reason: GapReason | null;
}

export type FromWorker =
  /** The source is open; frames do not count yet. */
  | { kind: 'ready'; source: ReadySource }
  /** `offsetMs`: wall time minus the host's uptime, used to stamp minutes from now on. */
  | { kind: 'listening'; sinceMs: number; offsetMs: number }
  | { kind: 'reports'; reports: MemberMinute[] }
  | { kind: 'windows'; windows: WindowReport[] }
  | { kind: 'seconds'; seconds: MemberSecond[] }
  /** Recordings that are full or not wanted any more, each once. */
  | { kind: 'recorded'; recorded: RecordedPackets[] }
  /** The clock was set by so much; seconds from here on are by the new time. */
  | { kind: 'stepped'; byMs: number }
  /** The source failed or could not be opened; the thread ends. */
  | { kind: 'failed'; code: string; message: string };

// The captures in a sensor's settings.

export type CaptureRole = 'uplink' | 'bridge';

export interface CaptureSpec {
  /** Unique in a sensor; the interface's name. */
  name: string;
  role: CaptureRole;
  source: SourceSpec;
  /** Number of threads that share the interface by fanout; default 1. */
  members?: number;
  /** Public names on the outside of encrypted hellos (ECH); the well-known ones by default. */
  outerNames?: readonly string[];
}
