/**
 * Reads whole capture files for people and programs: one reading of any number of files, filtered, printed as tables or
 * JSON. It loads little, because a small file should be shown at once.
 */
export { type ReadScreen, readFiles } from './read-files.ts';
export type { ReadOptions } from './read-query.ts';
export { createTextOutput } from './text-output.ts';
