/** What customers see of their traffic and what protects their servers. Each part is a sub-folder; this is their one door. */
export type {
  ApplicationRow,
  ConflictRow,
  LatestRow,
  MinuteRow,
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
