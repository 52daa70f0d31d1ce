/**
 * How a running sensor shows itself on its own host: a socket in its state directory that tells its status and every
 * live window, as JSON, a line each.
 *
 * Promises: only whoever may enter the state directory can read it; a reader that is slow is cut off, never waited for;
 * where the socket can't be made the sensor runs without it.
 */
import type { CaptureState, LocalWindow } from '#sensor/collection/index.ts';
import type { LiveStatus } from '#sensor/live/index.ts';
import type { SpoolStatus } from '#sensor/spool/index.ts';

export { followSensor, type SensorConnection } from './follow-sensor.ts';
export { createStatusServer, type StatusServer } from './status-server.ts';

export interface SensorStatus {
  version: string;
  monitor: string;
  site: string;
  startedAtMs: number;
  captures: CaptureState[];
  spool: Pick<SpoolStatus, 'pendingUploads' | 'pendingBytes' | 'roomMinutes'>;
  live: LiveStatus;
}

/** One line of the socket. */
export type StatusLine = { kind: 'status'; status: SensorStatus } | { kind: 'window'; window: LocalWindow };
