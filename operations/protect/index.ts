/** What customers see of their traffic and what protects their servers. Each part is a sub-folder; this is their one door. */
export {
  type AttackQuery,
  type AttackRow,
  actionsOf,
  createIncidentsReceiver,
  createProtectIncidents,
  describeClass,
  type IncidentCursor,
  type IncidentRow,
  type IncidentStatus,
  type IncidentVector,
  type OpenAttack,
  type ProjectOutcomes,
  type ProtectIncidents,
  type RefusalRow,
} from './incidents/index.ts';
export type { LiveRow, LiveStatus, ProtectLive } from './live/index.ts';
export { createLiveReceiver, createProtectLive } from './live/index.ts';
export {
  createProtectScans,
  createScansReceiver,
  type FoundService,
  isGuess,
  type ListedScan,
  type ObservedPort,
  type PendingScans,
  type ProtectScans,
  readScanCursor,
  type ScanListQuery,
  type ScanStatus,
  type ServerPorts,
  type ServerScan,
} from './scans/index.ts';
export {
  createProtectSettings,
  type ProtectSettings,
  type ProtectSettingsFeature,
} from './settings/index.ts';
export type {
  ApplicationRow,
  ConflictRow,
  LatestRow,
  MinuteRow,
  MinuteStatus,
  ProjectSources,
  ProtectTraffic,
  ProtectTrafficDeps,
  SeriesRow,
  SetAsideRow,
  SourceRow,
  StepRow,
  Traffic,
  TrafficRange,
  TrafficSubject,
} from './traffic/index.ts';
export {
  createMinutesReceiver,
  createProtectTraffic,
  hasExactMinutes,
  isStale,
} from './traffic/index.ts';
