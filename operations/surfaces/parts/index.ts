/**
 * What the portal and the operators' console draw alike: they may not import each other, and a customer and the operator who
 * helps them should see the same thing.
 *
 * These functions check no permission: the caller has checked that the person may see the data.
 */

export type { ApiFacts } from './api-reference/guides.ts';
export { clientDigests, clientDownloads, createApiReference, listCalls } from './api-reference/index.ts';
export * from './protect.ts';
export { actionWords, bootFacts, changingStatuses, serverActionsTable } from './servers.ts';
export { requestShareColumn, requestsByDayChart, requestsByKeyTable, spendingChart } from './spending.ts';
export { type DaySteps, dayOf, daySpark, readDaySteps, trafficDaySection } from './traffic/day.ts';
export * from './traffic/explore.routes.ts';
export {
  byLiveBuckets,
  type Flags,
  type Gap,
  gapsOf,
  lossNote,
  offTimes,
  readFlags,
} from './traffic/flags.ts';
export type { ChartAnswers } from './traffic/read-answers.ts';
export {
  type ExplorerPlace,
  type ExplorerSurface,
  type PeerLink,
  readTrafficRange,
} from './traffic/traffic-view.ts';
