/**
 * One box that finds addresses, MACs, machines, devices, applications, sensors and sites.
 *
 * It finds exact things in any spelling and names by the beginnings of their words, by indexes that every PostgreSQL has.
 * It owns one table, the names of applications by site, because facts hold each name once a minute: whoever ranks a
 * site's applications notes their names here.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Found, search } from './search.ts';
import { upsertApplicationNames } from './store.ts';

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
  /** Makes names of applications findable; says nothing about how much they were used. */
  noteApplications(siteId: number, names: readonly string[], seenAtMs: number): Promise<void>;
}

export function createSearch(deps: SearchDeps): Search {
  return {
    async find(typed, limit) {
      return search(deps.db(), await deps.sites.list(), typed, limit);
    },
    async noteApplications(siteId, names, seenAtMs) {
      if (names.length > 0) await upsertApplicationNames(deps.db(), siteId, names, seenAtMs);
    },
  };
}
