/**
 * Reads whole capture files for people and programs: one reading of any number of files, filtered, printed as tables or
 * JSON; or the attacks in a file, found by the detector. It loads little, because a small file should be shown at once.
 */
import type { DetectOptions } from './detect-file.ts';
import type { ReadScreen } from './read-files.ts';

export type { DetectOptions } from './detect-file.ts';
export { type ReadScreen, readFiles } from './read-files.ts';
export type { ReadOptions } from './read-query.ts';
export { createTextOutput } from './text-output.ts';

/** Prints the incidents of a capture file and resolves with the exit code. Loads the detector when it is called. */
export async function detectFile(path: string, options: DetectOptions, screen: ReadScreen): Promise<number> {
  return (await import('./detect-file.ts')).detectFile(path, options, screen);
}
