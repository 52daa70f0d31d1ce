/**
 * What the portal and the operators' console draw alike: they may not import each other, and a customer and the operator who
 * helps them should see the same thing.
 *
 * These functions check no permission: the caller has checked that the person may see the data.
 */
export { type ApiFacts, createApiReference } from './api-reference/index.ts';
export {
  evidenceCell,
  findingCountWords,
  findingMarks,
  findingMeaning,
  incompleteText,
  isDatabaseOld,
  nvdNotice,
  packageText,
  readFindingCursor,
  recordHref,
  softwareOf,
  staleMark,
  unableText,
  writeFindingCursor,
} from './finding-words.ts';
export {
  durationOf,
  incidentBadge,
  openAttackBadge,
  openAttackWords,
  readIncidentCursor,
  upperFirst,
  writeIncidentCursor,
} from './incident-words.ts';
export { requestsByKeyTable } from './requests-by-key.ts';
export { scanBadge, scanKind, scanOutcome, scanStateWord } from './scan-words.ts';
export { actionWords, serverActionsTable } from './server-actions.ts';
export { changingStatuses } from './server-statuses.ts';
export { spendingChart } from './spending-chart.ts';
export {
  byLiveBuckets,
  type ChartAnswers,
  completeExplorer,
  type DaySteps,
  dayOf,
  daySpark,
  type EventHref,
  type Explorer,
  type ExplorerDeps,
  type ExplorerPlace,
  type ExplorerSurface,
  type Flags,
  type Gap,
  gapsOf,
  lossNote,
  mostText,
  offTimes,
  type PeerLink,
  type ReadExplorer,
  readDaySteps,
  readExplorer,
  readExplorerChart,
  readFlags,
  readTrafficRange,
  registerExplorer,
  trafficBody,
  trafficDaySection,
} from './traffic/index.ts';
