/**
 * Collects the reports of all captures into one upload per UTC minute and commits it to the spool.
 *
 * Guarantees: every heard frame is committed once. A minute that is incomplete, or that the clock showed twice, has a
 * gap row. Minutes in which the sensor did not run become a gap at its next start. Time that a clock step skipped is
 * not a gap, and no gap covers future time.
 */

import type { MinuteCollectorOptions } from './minute-collector.ts';

export type { CaptureState } from './capture-group.ts';
export type { CaptureRole, CaptureSpec } from './capture-spec.ts';
export { type Collection, createCollection } from './collection.ts';
export { compileThread } from './member-thread.ts';
export type { LocalWindow } from './merge-windows.ts';

type CollectorSpool = MinuteCollectorOptions['spool'];

/** Replaces the spool when minutes are only displayed: it stores nothing and covers nothing. */
export function createUnkeptMinutes(append: CollectorSpool['append'] = () => {}): CollectorSpool {
  return {
    append,
    coveredBefore: () => null,
    lastCommit: () => null,
    lastStampedBy: () => null,
  };
}
