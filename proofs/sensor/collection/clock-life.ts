/** The result of one simulated life of a sensor: its frames, and the data that the monitor stored. */
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';

export interface Frame {
  id: number;
  capture: string;
  trueMs: number;
  /** How far the clock was ahead when the frame was heard. */
  aheadMs: number;
  bootId: string;
  /** Heard within a second of an event: it may count on either side. */
  isNearEvent: boolean;
  /** A kill loses uncommitted data. */
  mayBeLost: boolean;
}

export interface StoredMinute {
  minute: TelemetryMinute;
  /** Its upload. */
  upload: string;
  storedAtMs: number;
}

export interface Life {
  frames: Frame[];
  stored: StoredMinute[];
  gaps: { gap: TelemetryGap; storedAtMs: number }[];
  /** True times of all events of the clock and the sensor. */
  events: number[];
  /** True times without a capture, between two looks at a right clock. */
  downtimes: { fromMs: number; toMs: number }[];
  /** Uploads that were, or may have been, sent without an answer: plausible times in them are not corrected. */
  uncertain: Set<string>;
  /** Boots in which the monitor reported the time. */
  contacts: Set<string>;
  lastBootId: string;
  endedMs: number;
  pending: number;
}
