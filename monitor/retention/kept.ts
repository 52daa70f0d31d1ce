/** What features declare about data that they do not keep permanently (NET-8, retention). */

export type KeptFor = '24 hours' | '7 days' | '3 months' | '1 year';

/** A table of the feature that declares it. Tables without a line are kept permanently. */
export interface KeptTable {
  table: string;
  /** The column with the time. */
  column: string;
  keptFor: KeptFor;
  /** True: whole partitions are dropped, and only rows of the boundary partition are deleted. */
  isPartitioned: boolean;
  /** Condition for the rows of this line, as SQL; absent for all rows. */
  only?: string;
  /**
   * Called outside of any transaction before rows with a time before this moment are deleted. It removes what they refer to
   * elsewhere, such as objects in a storage. Rows from that moment on stay. When it throws, its rows stay until the next
   * run, which calls it again, so it must accept that a part is removed already.
   */
  beforeRemoval?(beforeMs: number): Promise<void>;
}

/** Data that a feature deletes by rules of its own, once a run. */
export interface Sweep {
  /** The name of its count in the report. */
  name: string;
  /** Gets the database's time, milliseconds since 1970; returns the number of deleted rows. */
  run(nowMs: number): Promise<number>;
}
