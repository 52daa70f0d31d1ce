/**
 * From captures to the spool: one upload for each UTC minute, with what every capture of this sensor saw in it.
 *
 * Promises: a minute is committed once, whole or partial or as a gap, and never again; a minute that is not whole is
 * named by a gap row; minutes in which the sensor did not run are a gap as soon as it starts again.
 */

export type { CaptureState } from './capture-group.ts';
export { type CaptureSpec, parseCaptures } from './capture-spec.ts';
export { type Collection, type CollectionOptions, createCollection } from './collection.ts';
export { compileThread } from './member-thread.ts';
export type { LocalWindow } from './merge-windows.ts';
