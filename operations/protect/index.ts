/** What customers see of their traffic and what protects their servers. Each part is a sub-folder; this is their one door. */
export type { FindingKey } from './findings/finding.ts';
export * from './findings/index.ts';
export type { FindingStatus } from './findings/store.ts';
export {
  actionsOf,
  type IncidentCursor,
  type IncidentRow,
  type IncidentVector,
} from './incidents/incident.ts';
export {
  createProtectIncidents,
  type ProjectOutcomes,
  type ProtectIncidents,
} from './incidents/index.ts';
export type { IncidentStatus, OpenAttack, RefusalRow } from './incidents/store.ts';
export * from './live/index.ts';
export type { LiveRow, LiveStatus } from './live/store.ts';
export { createProtectScans, type ProtectScans } from './scans/index.ts';
export { readCursor as readScanCursor } from './scans/monitor-requests.ts';
export type { ScanStatus } from './scans/port-store.ts';
export {
  type FoundService,
  isGuess,
  type ObservedPort,
  type ServerPorts,
  type ServerScan,
} from './scans/ports-of-server.ts';
export { requestLimits } from './scans/scan-request.ts';
export { createProtectSettings, type ProtectSettingsFeature } from './settings/index.ts';
export { type FindingMailChoice, findingMailChoices, type ProtectSettings } from './settings/settings.ts';
export {
  customerBox,
  isOfApplications,
  namesApplications,
  type RankedDimension,
  staffBox,
} from './traffic/exploration.ts';
export type { Exploration } from './traffic/explore-traffic.ts';
export type { ProjectSources, ProtectTraffic } from './traffic/index.ts';
export { createProtectTraffic } from './traffic/index.ts';
export { isStale } from './traffic/minute.ts';
export { bytesOf, hasExactMinutes } from './traffic/read-traffic.ts';
export type { LatestRow, MinuteRow, MinuteStatus, StepRow } from './traffic/store.ts';
export { addressFilters, serverNamer } from './traffic/traffic-names.ts';
export type { UsageStep, UsageTotal } from './traffic/usage-store.ts';
