/** What the thread of the proof `file-robustness` is given, what it tells, and the faults that are planted in it. */

export const plantedFaults = [
  'throws',
  'exits-with-1',
  'breaks-json',
  'counts-twice',
  'repeats-work',
  'works-in-vain',
  'reads-again',
  'leaks',
] as const;
export type PlantedFault = (typeof plantedFaults)[number];

export interface BreakFilesInput {
  folder: string;
  n: number;
  seed: number;
  fault: PlantedFault | null;
}

/** What the thread posts, again and again: all that it found so far. */
export interface BreakFilesResult {
  offences: string[];
  tried: number;
  read: number;
  refused: number;
  /** Files that were read in a process of their own as well. */
  processes: number;
  /** The most that a file of a batch took in the mean, and a file read of itself. */
  most: { blocksOfFile: number; readShare: number };
  grownKiB: number;
}
