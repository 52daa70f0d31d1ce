/**
 * Search for addresses, MACs, machines, devices, applications, sensors and sites from one box.
 *
 * It finds exact values in any notation, and names by the beginnings of their words, with standard PostgreSQL indexes.
 * It owns one table, the names of applications by site, because facts repeat each name every minute; a loop adds
 * recently used names.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Found, search } from './search.ts';

export { createNamesLoop } from './note-names.ts';
export { textMax } from './question.ts';
export type { Found } from './search.ts';

export type Search = ReturnType<typeof createSearch>;

export function createSearch(deps: {
  db: () => Queryable;
  /** Every site with its local prefixes. */
  sites: { list(): Promise<readonly { id: number; name: string; localCidrs: readonly string[] }[]> };
}) {
  return {
    /** Matches, at most `limit` of each kind; null for a text without a letter or digit. */
    async find(typed: string, limit: number): Promise<Found | null> {
      return search(deps.db(), await deps.sites.list(), typed, limit);
    },
  };
}
