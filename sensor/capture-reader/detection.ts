import type { DetectorResult } from '#sensor/detector/index.ts';
import type { InstantOfFrame } from './instants.ts';

/** What was found in one file. */
export interface Detection {
  packets: number;
  firstAt: InstantOfFrame | null;
  lastAt: InstantOfFrame | null;
  result: DetectorResult;
  /** True when every packet of the file was read whole and decoded. */
  isWhole: boolean;
  problems: string[];
}
