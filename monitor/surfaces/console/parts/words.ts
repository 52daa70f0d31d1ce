/** Labels for the monitor's codes, the same on every page. */

const gapReasons: Readonly<Record<string, string>> = {
  sensor_down: 'the sensor did not run',
  capture_failed: 'the capture did not run',
  storage_full: 'the sensor’s spool was full',
  refused: 'the upload was refused',
  spool_damaged: 'the sensor’s spool was damaged',
  clock_step: 'the host’s clock jumped',
  rejected: 'the upload could not be applied',
};

/** The reason of a gap; an unknown code is shown unchanged. */
export const gapReason = (gap: { reason: string }): string => gapReasons[gap.reason] ?? gap.reason;

const eventKinds: Readonly<Record<string, string>> = {
  ddos_detected: 'attack detected',
  telemetry_rejected: 'upload rejected',
  ip_conflict_opened: 'address in conflict',
  ip_conflict_resolved: 'conflict resolved',
  spoofed_traffic: 'spoofed traffic',
  server_state_changed: 'server switched on or off',
};

/** Label of an event's kind; an unknown kind is shown by its name. */
export const eventName = (kind: string): string => eventKinds[kind] ?? kind.replaceAll('_', ' ');
