/**
 * The ranking of 24 hours (NET-8.8): computed for every site and view every five minutes by the holder of the lease,
 * stored, and cached by the web process, so that pages do not read a day of facts.
 */
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { FactStore } from '#monitor/facts/index.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { findRanking, type StoredRanking, saveRanking } from './store.ts';
import { type ApplicationView, applicationViews, viewRange } from './views.ts';

const intervalMs = 300_000;
const leaseSeconds = 120;
const dayMs = 86_400_000;
/** Rows of a stored ranking; totals include all. */
const rowsMax = 200;
/** Maximum number of cached rankings. */
const heldMax = 4096;

/** Recomputes every site's rankings. */
export function createRankingLoop(deps: {
  db: () => Queryable;
  facts: Pick<FactStore, 'rankApplications' | 'newestMinutes'>;
  clock: Clock;
  reporter: Reporter;
}): LeasedLoop {
  return createLeasedLoop({
    name: 'rank_applications',
    intervalMs,
    ttlSeconds: leaseSeconds,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(lease, renew, signal) {
      const sites = [...(await deps.facts.newestMinutes()).keys()];
      const toMs = Math.floor((await readNowMs(deps.db())) / 60_000) * 60_000;
      for (const siteId of sites) {
        for (const view of Object.keys(applicationViews) as ApplicationView[]) {
          if (signal.aborted || !(await renew())) return;
          const range = viewRange(siteId, view, toMs - dayMs, toMs);
          const use = await deps.facts.rankApplications({ ...range, limit: rowsMax });
          await ifHeld(deps.db(), lease, (trx) => saveRanking(trx, { ...range, view, use }));
        }
      }
    },
  });
}

/** Reads stored rankings and caches each for `holdSeconds`. */
export function createRankingReader(deps: {
  db: () => Queryable;
  clock: Clock;
  holdSeconds: number;
}): (siteId: number, view: ApplicationView) => Promise<StoredRanking | null> {
  const held = new Map<string, { untilMs: number; ranking: Promise<StoredRanking | null> }>();
  return (siteId, view) => {
    const key = `${siteId} ${view}`;
    const nowMs = deps.clock.monotonicMs();
    const known = held.get(key);
    if (known && known.untilMs > nowMs) return known.ranking;
    if (held.size >= heldMax) held.clear();
    const ranking = findRanking(deps.db(), siteId, view);
    held.set(key, { untilMs: nowMs + deps.holdSeconds * 1000, ranking });
    const forget = () => held.delete(key);
    // A missing ranking, or a failed read, is not cached.
    ranking.then((found) => found ?? forget(), forget);
    return ranking;
  };
}
