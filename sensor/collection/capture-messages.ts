/** What a capture's thread and the sensor's main thread say to each other. */
import type { GapReason, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import type { CaptureSpec } from './capture-spec.ts';

/** Which addresses are local, as canonical text. */
export interface LocalAddresses {
  prefixes: readonly string[];
  addresses: readonly string[];
}

export interface WorkerInput {
  spec: CaptureSpec;
}

export type ToWorker =
  /** From now on frames count. */
  { kind: 'begin'; local: LocalAddresses } | { kind: 'local'; local: LocalAddresses } | { kind: 'stop' };

export type FromWorker =
  /** The source is open; nothing counts yet. */
  | { kind: 'ready' }
  | { kind: 'listening'; sinceMs: number }
  | { kind: 'reports'; reports: { minute: TelemetryMinute; reason: GapReason | null }[] }
  /** The source is gone or never came up; the thread ends. */
  | { kind: 'failed'; code: string; message: string };
