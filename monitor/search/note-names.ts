/** Indexes the names of applications for the search: recently used names are added, once for each site and name. */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { FactStore } from '#monitor/facts/index.ts';
import { createLeasedLoop, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { upsertApplicationNames } from './store.ts';

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
