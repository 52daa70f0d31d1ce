export interface Job {
  id: number;
  kind: string;
  payload: unknown;
  /** Counts from 1. */
  attempts: number;
  /** The fence: `finishJob` refuses another term. */
  term: number;
}

export interface JobHandler {
  /** Does the work. May call `finishJob` in its own last transaction; otherwise the runner finishes it. */
  run(job: Job, signal: AbortSignal): Promise<void>;
  /** After this many failed attempts `giveUp` is called once and the job ends. Absent: tries without end. */
  attemptsMax?: number;
  giveUp?(job: Job, error: string): Promise<void>;
}
