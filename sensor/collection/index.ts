/**
 * From captures to the spool: one upload for each UTC minute, with what every capture of this sensor saw in it.
 *
 * Promises: everything that was heard is committed once; a minute that is not whole, or that the clock showed twice, is
 * named by a gap row; minutes in which the sensor did not run are a gap as soon as it starts again. What a clock jumps
 * over is no gap, and nothing is ever said of a time that has not come.
 */

export type { CaptureState } from './capture-group.ts';
export { type CaptureSpec, parseCaptures } from './capture-spec.ts';
export { type Collection, type CollectionOptions, createCollection } from './collection.ts';
export { compileThread } from './member-thread.ts';
export type { LocalWindow } from './merge-windows.ts';
export { createUnkeptMinutes } from './unkept-minutes.ts';
