/**
 * What the portal and the operators' console draw alike: they may not import each other, and a customer and the operator who
 * helps them should see the same thing.
 *
 * These functions check no permission: the caller has checked that the person may see the data.
 */

export { clientDigests, clientDownloads } from './api-reference/clients.page.ts';
export type { ApiFacts } from './api-reference/guides.ts';
export { createApiReference, listCalls } from './api-reference/index.ts';
export { groupedMax, servicesTable } from './finding-services.ts';
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
export { trafficDaySection } from './traffic/day-section.ts';
export { type DaySteps, dayOf, daySpark, readDaySteps } from './traffic/day-spark.ts';
export {
  completeExplorer,
  type ExplorerDeps,
  readExplorer,
  readExplorerChart,
  registerExplorer,
} from './traffic/explore.routes.ts';
export { mostText, type ReadExplorer, trafficBody } from './traffic/explore-page.ts';
export { type Flags, readFlags } from './traffic/flags.ts';
export type { ExplorerPlace, ExplorerSurface, PeerLink } from './traffic/place.ts';
export type { ChartAnswers } from './traffic/read-answers.ts';
export { byLiveBuckets, type Gap, gapsOf, lossNote, offTimes } from './traffic/reasons.ts';
export { readTrafficRange } from './traffic/traffic-view.ts';
