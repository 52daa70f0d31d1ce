/** What a capture's thread and the sensor's main thread say to each other. */
import type { GapReason } from '#contracts/sensor-api/telemetry.ts';
import type { MinuteReport, WindowReport } from '#sensor/capture/index.ts';
import type { CaptureMethod, SourceSpec } from '#sensor/packet-source/index.ts';
import type { CaptureRole } from './capture-spec.ts';

/** Which addresses are local, as canonical text. */
export interface LocalAddresses {
  prefixes: readonly string[];
  addresses: readonly string[];
}

/** What a thread has to do: one member of one capture. */
export interface WorkerInput {
  name: string;
  role: CaptureRole;
  source: SourceSpec;
  /** Part of one capture's tables that this member gets. */
  share: number;
  windowMs: number;
  windowApplicationsMax: number;
  outerNames?: readonly string[];
}

export type ToWorker =
  /** From now on frames count. */
  { kind: 'begin'; local: LocalAddresses } | { kind: 'local'; local: LocalAddresses } | { kind: 'stop' };

/** An open source. */
export interface ReadySource {
  method: CaptureMethod;
  countsSegments: boolean;
  fanoutGroup: number | null;
  /** Why another method was taken than the best one. */
  fallback: string | null;
}

/** A closed minute of one member; `reason` says why it is not whole. */
export interface MemberMinute {
  minute: MinuteReport;
  reason: GapReason | null;
}

export type FromWorker =
  /** The source is open; nothing counts yet. */
  | { kind: 'ready'; source: ReadySource }
  /** `offsetMs`: wall time minus the host's uptime, by which minutes are stamped from now on. */
  | { kind: 'listening'; sinceMs: number; offsetMs: number }
  | { kind: 'reports'; reports: MemberMinute[] }
  | { kind: 'windows'; windows: WindowReport[] }
  /** The source is gone or never came up; the thread ends. */
  | { kind: 'failed'; code: string; message: string };
