import type { ReadingResult } from '#sensor/capture/index.ts';
import type { AnswerLog } from './answer-log.ts';
import type { MinuteSums } from './minute-sums.ts';
import type { Selection } from './read-filter.ts';
import type { FileFacts } from './read-frames.ts';

/** Everything that is printed. */
export interface Findings {
  facts: FileFacts;
  result: ReadingResult;
  /** The rows that match the query. */
  selection: Selection;
  answers: AnswerLog;
  /** Null when not requested. */
  minutes: MinuteSums | null;
}
