/**
 * Queries of traffic over every dimension: the one way in which the explorer page, the read API and what reads it ask.
 *
 * A query names a site, a range, filters, up to two dimensions to group by and a step. Its numbers are those of the other
 * pages, because they come from the same selection: of an address and minute one capture counts (NET-2.4.2), of a minute
 * and direction one vantage point (NET-2.2.5). Which facts can answer follows from the dimensions alone: counters of
 * addresses where nothing else is asked for, usage by application, and connections between exact addresses for peers,
 * which live for 24 hours (NET-2.2.7). The answer says which it was.
 *
 * A step in which no capture that could see the traffic listened is a gap and never zero. What can't be answered for the
 * range is said in `limits`, and the rest is answered.
 *
 * `query.ts` has the types, `query-url.ts` the form in a URL; the language of filters is that of `service-kit/explorer`.
 */
import { createQueryGate } from './bound-queries.ts';
import { completeValues } from './complete.ts';
import { type Asking, type ExplorerDeps, explore, exploreTogether } from './explore.ts';
import { type Dimension, dimensions, type Query } from './query.ts';
import { listAddresses } from './resolve.ts';

export { courseStep } from './build-answer.ts';
export type { Asking } from './explore.ts';
export * from './query.ts';
export { parseQueryUrl, printQueryUrl, readTimes } from './query.ts';

export type Explorer = ReturnType<typeof createExplorer>;

export function createExplorer(given: Omit<ExplorerDeps, 'gate'>) {
  const deps = { ...given, gate: createQueryGate() };
  const hasNetworks = deps.describeNetworks !== null;
  return {
    /** Those that can be answered: without files of networks, no country and no AS. */
    dimensions: dimensions.filter((one) => hasNetworks || (one !== 'country' && one !== 'as')),
    /**
     * The answer to a query, when its turn has come. The caller has decided that the reader may see the site. Throws
     * `explorer.too_many_steps`, `facts.too_slow`, `explorer.busy` and `explorer.left`; what can't be answered otherwise is in `limits`.
     */
    explore: (query: Query, asking: Asking = {}) => explore(deps, query, asking),
    /** The same of several queries of one site, in their order; those of the same facts and range take one turn and are read together. */
    exploreTogether: (queries: readonly Query[], asking: Asking = {}) =>
      exploreTogether(deps, queries, asking),
    /** Local addresses that the filters leave, where they name addresses, servers or customers; null: any. */
    listAddresses: (query: Pick<Query, 'siteId' | 'by' | 'filters'>) => listAddresses(deps.db(), query),
    /** Values of a dimension that hold a text, for completion. */
    complete: (siteId: number, dimension: Dimension, typed: string, limit: number) =>
      completeValues(deps.db(), siteId, dimension, typed, limit),
  };
}
