/**
 * Status of a running sensor for its own host: a socket in its state directory that sends the status and every live
 * window as JSON lines.
 *
 * Guarantees: only users with access to the state directory can read it. A slow reader is disconnected. If the socket
 * can not be created, the sensor runs without it.
 */
export { describeEvidence } from './describe-evidence.ts';
export { followSensor } from './follow-sensor.ts';
export type { SensorStatus, StatusLine } from './status.ts';
export { createStatusServer } from './status-server.ts';
