/** A request that changes something, and what the audit trail must say of it. */
import type { Stage } from './stage.ts';

/** The operations that the request must leave entries of, and the request itself. */
export type Case = readonly [
  operations: string | readonly string[],
  send: (stage: Stage) => Promise<Response>,
];

export type Cases = Readonly<Record<string, Case>>;
