import type { Queryable } from '#service-kit/postgres/index.ts';
import { lockAllSites } from './sightings-store.ts';
import { countUnmatched, type MatchInput, writeMatches } from './store.ts';

/** Stores matches that an import confirmed. Returns the number of changed devices. Unchanged matches take no lock. */
export async function matchDevices(trx: Queryable, matches: readonly MatchInput[]): Promise<number> {
  if (matches.length === 0 || (await countUnmatched(trx, matches)) === 0) return 0;
  await lockAllSites(trx);
  return writeMatches(trx, matches);
}
