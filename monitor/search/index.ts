/**
 * One box that finds addresses, MACs, machines, devices, applications, sensors and sites.
 *
 * It finds exact things in any spelling and names by the beginnings of their words, by indexes that every PostgreSQL has.
 * It owns one table, the names of applications by site, because facts hold each name once a minute; a loop notes what
 * was used of late.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Found, search } from './search.ts';

export { createNamesLoop } from './note-names.ts';
export { textMax } from './question.ts';
export type { Found } from './search.ts';

export interface SearchDeps {
  db: () => Queryable;
  /** Every site with its local prefixes. */
  sites: { list(): Promise<readonly { id: number; name: string; localCidrs: readonly string[] }[]> };
}

export interface Search {
  /** What fits, at most `limit` of each kind; null for a text without a letter or digit. */
  find(typed: string, limit: number): Promise<Found | null>;
}

export function createSearch(deps: SearchDeps): Search {
  return {
    async find(typed, limit) {
      return search(deps.db(), await deps.sites.list(), typed, limit);
    },
  };
}
