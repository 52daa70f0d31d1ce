export interface Job {
  id: number;
  kind: string;
  payload: unknown;
  /** Counts from 1. */
  attempts: number;
  /** The fence: `finishJob` refuses another term. */
  term: number;
}
