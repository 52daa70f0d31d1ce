/**
 * Search for addresses, MACs, machines, devices, applications, sensors and sites from one box.
 *
 * It finds exact values in any notation, and names by the beginnings of their words, with standard PostgreSQL indexes.
 * It owns one table, the names of applications by site, because facts repeat each name every minute; a loop adds
 * recently used names.
 */

import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { FactStore } from '#monitor/facts/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type Found, search } from './search.ts';
import { upsertApplicationNames } from './store.ts';

export type { Found } from './search.ts';
export { textMax } from './search.ts';

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

const intervalMs = 300_000;
/** Longer than the interval, for late minutes and skipped rounds. */
const lookBackSeconds = 900;
const leaseSeconds = 120;
const namesMax = 10_000;

/** Reads up to each site's newest minute, so that a site that was disconnected is caught up. */
export function createNamesLoop(deps: {
  db: () => Queryable;
  facts: Pick<FactStore, 'rankApplications' | 'newestMinutes'>;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createLeasedLoop({
    name: 'note_application_names',
    intervalMs,
    ttlSeconds: leaseSeconds,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(_lease, renew, signal) {
      for (const [siteId, newest] of await deps.facts.newestMinutes()) {
        if (signal.aborted || !(await renew())) return;
        const range = {
          siteId,
          fromMinute: newest + 60 - lookBackSeconds,
          toMinute: newest + 60,
          direction: null,
        };
        const { rows } = await deps.facts.rankApplications({ ...range, limit: namesMax });
        const names = [...new Set(rows.map((row) => row.name))];
        if (names.length > 0) await upsertApplicationNames(deps.db(), siteId, names, newest * 1000);
      }
    },
  });
}
