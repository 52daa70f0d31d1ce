/** Input and results of the thread of the proof `file-robustness`, and its planted faults. */

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

/** All results so far; posted repeatedly by the thread. */
export interface BreakFilesResult {
  offences: string[];
  tried: number;
  read: number;
  refused: number;
  /** Files that were also read in their own process. */
  processes: number;
  /** Maximum averages of a file in a batch, and of a file read alone. */
  most: { blocksOfFile: number; readShare: number };
  grownKiB: number;
}
