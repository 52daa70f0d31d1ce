/** Codes of the monitor in the words that every page has for them. */

const gapReasons: Readonly<Record<string, string>> = {
  sensor_down: 'the sensor did not run',
  capture_failed: 'the capture did not run',
  storage_full: 'the sensor’s spool was full',
  refused: 'the upload was refused',
  spool_damaged: 'the sensor’s spool was damaged',
  clock_step: 'the host’s clock jumped',
  rejected: 'the upload could not be applied',
};

/** Why minutes are missing; an unknown reason is shown as it came. */
export const gapReason = (gap: { reason: string }): string => gapReasons[gap.reason] ?? gap.reason;

const eventKinds: Readonly<Record<string, string>> = {
  telemetry_rejected: 'upload rejected',
  ip_conflict_opened: 'address in conflict',
  ip_conflict_resolved: 'conflict resolved',
};

/** A kind of event; one without words is shown by its name. */
export const eventName = (kind: string): string => eventKinds[kind] ?? kind.replaceAll('_', ' ');
