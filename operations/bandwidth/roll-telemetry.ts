import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { keptMs } from '#contracts/retention.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop } from '#service-kit/leases/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const dayMs = 86_400_000;
/** As long as minutes are kept: some come late, after an outage. */
const wholeDays = keptMs('traffic') / dayMs + 1;
const recentDays = 2;
/** Every so many rounds all days are computed anew. */
const roundsPerWhole = 60;

/**
 * Adds the monitor's minutes up to days, every minute, on one of the replicas: all of them where they say what a server used, and always
 * the part that our own port scans caused, which no counter of a hypervisor tells.
 */
export function createRollupLoop(deps: {
  db: () => Queryable;
  clock: Clock;
  reporter: Reporter;
  source: store.Source;
}): LeasedLoop {
  let round = 0;
  return createLeasedLoop({
    name: 'operations.bandwidth_rollup',
    intervalMs: 60_000,
    ttlSeconds: 300,
    ...deps,
    async run(lease) {
      const days = round % roundsPerWhole === 0 ? wholeDays : recentDays;
      await ifHeld(deps.db(), lease, async (tx) => {
        const today = Math.floor((await readNowMs(tx)) / dayMs) * dayMs;
        const fromMs = today - (days - 1) * dayMs;
        if (deps.source === 'telemetry') await store.rollMinutes(tx, fromMs);
        await store.rollOwnScans(tx, fromMs);
      });
      round += 1;
    },
  });
}
