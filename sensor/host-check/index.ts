/**
 * Checks by trial what this host can do for a sensor: opens sockets, writes files, calls the monitor. Changes nothing
 * and never throws.
 */

export { checkCapture } from './check-capture.ts';
export { checkHost } from './check-host.ts';
export { checkMonitor } from './check-monitor.ts';
export { type Finding, finding } from './finding.ts';
