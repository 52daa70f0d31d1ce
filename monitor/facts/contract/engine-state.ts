/** How an engine of facts with a server of its own stands. Figures are null while it does not answer. */
export interface FactEngineState {
  name: string;
  /** What needs attention, as a sentence; null: nothing does. */
  problem: string | null;
  /** How long a small question took, milliseconds. */
  answerMs: number | null;
  /** Pieces of tables that are not merged yet, and what they hold. */
  parts: number | null;
  rows: number | null;
  bytes: number | null;
  /** Of its disk. */
  freeBytes: number | null;
}
