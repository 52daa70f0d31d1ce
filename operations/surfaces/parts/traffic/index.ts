/**
 * The explorer of traffic, which the portal and the operators' console have alike. What a page reads is what the actor of its
 * request reaches; a place only says what can be asked and where its links lead.
 */
export { trafficDaySection } from './day-section.ts';
export { type DaySteps, dayOf, daySpark, readDaySteps } from './day-spark.ts';
export {
  completeExplorer,
  type ExplorerDeps,
  readExplorer,
  readExplorerChart,
  registerExplorer,
} from './explore.routes.ts';
export { mostText, type ReadExplorer, trafficBody } from './explore-page.ts';
export { type EventHref, type Flags, readFlags } from './flags.ts';
export type { Explorer, ExplorerPlace, ExplorerSurface, PeerLink } from './place.ts';
export type { ChartAnswers } from './read-answers.ts';
export { byLiveBuckets, type Gap, gapsOf, lossNote, offTimes } from './reasons.ts';
export { readTrafficRange } from './traffic-view.ts';
