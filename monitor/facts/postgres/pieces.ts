/** What the parts of a query are made of, whichever tables they are of. */
import type { RawBuilder } from 'kysely';
import type { ExploredFilter, ExploredReading } from '../contract/exploration.ts';

export interface Pieces {
  /** Questions with the same filters, range and steps sum the same rows where their kind is the same. */
  kind: string;
  /** Common table expressions before `parts`, with a comma after each. */
  before: RawBuilder<unknown>;
  /** Selects, each of other rows, of `columns`. They are summed one by one, so that PostgreSQL can share a large one out. */
  parts: readonly RawBuilder<unknown>[];
  columns: readonly string[];
  /** Those that the parts don't meet by themselves. */
  filters: readonly ExploredFilter[];
  /**
   * `locals` of rows that were taken out as nothing, packed; where one has an address that the filters don't leave out, the sums
   * may lack a row, and the facts have to be read (`isDirect`).
   */
  emptied?: RawBuilder<unknown>;
  grains: Set<'minutes' | 'tens' | 'hours' | 'days'>;
}

export interface PieceQuery extends ExploredReading {
  /** Nothing is found by taking a part away. */
  isDirect?: boolean;
}
