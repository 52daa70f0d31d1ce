/**
 * Detects attacks on protected addresses, and attacks that they send.
 *
 * Guarantees: a decision takes at most 3 seconds from the first packet at twice a threshold and 6 seconds at 1.1 times;
 * one second alone is never enough. An incident ends only after 60 healthy seconds that were observed, never by missing
 * data. Ordinary traffic in both directions is at most an incident of severity `info`. Memory is bounded for any
 * input; what does not fit is counted.
 *
 * A packet passes the counters of `sensor/attack-counters` (its kind, one-second bins). Each second `second-scan.ts` reads them, `watched-targets.ts` finds the
 * targets worth judging, `capture-watch.ts` looks at an uplink as a whole, `traffic.ts` takes ordinary traffic off, `ratios.ts` compares it with the thresholds,
 * `trigger.ts` and `classify.ts` decide, and `judge.ts` opens, updates and ends the incidents. `detector.ts` knows
 * the packets of a file and their clock; `live-detector.ts` gets the seconds of running captures.
 */
export type { WatchedCapture } from './capture-watch.ts';
export { kindsByClass } from './classify.ts';
export { Detector, type DetectorResult } from './detector.ts';
export type { Drill } from './drills.ts';
export type { FilteredSecond } from './filtered-traffic.ts';
export type { Incident } from './incident.ts';
export { KernelWatch } from './kernel-watch.ts';
export type { LargeTarget } from './largest-targets.ts';
export { type DetectionOrder, LiveDetector } from './live-detector.ts';
export { ruleOfKind } from './reason.ts';
export { createThresholdBook, type ThresholdGroup } from './threshold-book.ts';
export {
  defaultThresholds,
  parseThresholds,
  ThresholdError,
  type Thresholds,
  withDefaults,
} from './thresholds.ts';
