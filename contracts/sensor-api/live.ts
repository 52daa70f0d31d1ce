/**
 * What a live upload says, as plain data: ten-second windows of exact addresses, described in format.md.
 */
import type { TelemetryRole, TelemetryTotals } from './telemetry.ts';

/** Version of this contract; a plan announces it as `live_version` (NET-9.1). */
export const liveContractVersion = 1;
/** Windows begin at multiples of this, in UTC. */
export const liveWindowMs = 10_000;
/** Host rows of one window of one capture (NET-8: sensor allowance). */
export const liveHostsMax = 1000;
/** Windows of one upload. */
export const liveWindowsMax = 256;
/** Bytes of a live upload before compression. */
export const liveBytesMax = 8 * 1024 * 1024;

export interface LiveUpload {
  /** UUID of the sensor's run. */
  runId: string;
  sensorVersion: string;
  windows: LiveWindow[];
  /** How the sensor itself is; not with every upload. */
  condition?: SensorCondition;
}

/** What a sensor's host has room for. */
export interface SensorCondition {
  observedAtMs: number;
  spoolPendingBytes: number;
  /** What pending uploads may take. */
  spoolBytesMax: number;
  spoolPendingUploads: number;
  /** Of the file system that holds the spool. */
  diskFreeBytes: number;
  diskBytes: number;
  /** Collection pauses for want of room. */
  isPaused: boolean;
  /** Every capture that is set; older sensors do not tell. */
  captures?: CaptureCondition[];
}

/** Whether a capture listens. */
export interface CaptureCondition {
  name: string;
  role: TelemetryRole;
  isListening: boolean;
  /** Whether totals are the kernel's or counted frame by frame; absent from older sensors. */
  isCountedInKernel?: boolean;
}

/** What one capture saw between two ten-second boundaries of UTC. */
export interface LiveWindow {
  capture: string;
  role: TelemetryRole;
  /** Unix milliseconds. */
  startedAtMs: number;
  /** How much of the window the capture listened. */
  observedMs: number;
  totals: TelemetryTotals;
  /** Local addresses with traffic; one that is missing was silent or found no room, never zero. */
  hosts: LiveHost[];
  /** Addresses with traffic that found no room in the allowance. */
  hostsLeftOut: number;
}

export interface LiveHost {
  /** Canonical text. */
  address: string;
  rxBytes: number;
  txBytes: number;
  /** Both directions together. */
  packets: number;
}
