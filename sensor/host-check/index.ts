/**
 * What this host can do for a sensor and what it can't, found out by trying: sockets are opened, files are written,
 * the monitor is asked. Nothing is changed, and nothing here throws.
 */
export { checkCapture } from './check-capture.ts';
export { checkHost } from './check-host.ts';
export { checkMonitor } from './check-monitor.ts';

/** `bad` keeps the sensor from its work, `warn` makes it worse or dearer, `info` is good to know. */
export type FindingState = 'ok' | 'info' | 'warn' | 'bad';

export interface Finding {
  subject: string;
  state: FindingState;
  /** A sentence; where something is wrong it says what to do. */
  text: string;
}

/** A finding. */
export function finding(state: FindingState, subject: string, text: string): Finding {
  return { state, subject, text };
}
