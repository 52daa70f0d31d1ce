/**
 * Port scans of this host's servers: nmap as a child process, in phases, within limits.
 *
 * Guarantees: a scan never takes more of the host than its control groups allow, never sends more than 80,000 packets in
 * ten seconds, also after pauses, and never outlives the sensor. What was found stays in the result, also
 * when the scan ends early. Nothing is scanned where the limits can not be set or packets not be counted.
 */
export { findNmap } from './find-nmap.ts';
export { findRoute, isOwnAddress } from './find-route.ts';
export { createHostScans } from './host-scans.ts';
export { findScanLimits } from './limits/index.ts';
export { destinationFault } from './nmap-arguments.ts';
export { createPacer } from './pacing/index.ts';
export { startScan } from './run-scan.ts';
export type { RunningScan, ScanFindings, ScanTask } from './scan.ts';
export type { ScanService, ScanStatus } from './scan-service.ts';
