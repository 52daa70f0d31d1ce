/** Incidents whose last observation is older than ninety seconds become stale (NET-3.2). */
import { share } from '#monitor/placements/index.ts';
import { createLeasedLoop, ifHeld, type LeasedLoop } from '#service-kit/leases/index.ts';
import { readNowMs } from '#service-kit/postgres/index.ts';
import { staleMs } from './correlate.ts';
import type { IncidentsDeps } from './deps.ts';
import { regroup } from './regroup.ts';
import * as store from './store.ts';

const intervalMs = 5_000;
const leaseSeconds = 30;
/** Incidents of one transaction. */
const batchMax = 256;

/** A loop for any number of processes. */
export function createStaleLoop(deps: IncidentsDeps): LeasedLoop {
  return createLeasedLoop({
    name: 'incidents',
    intervalMs,
    ttlSeconds: leaseSeconds,
    ...{ db: deps.db, clock: deps.clock, reporter: deps.reporter },
    async run(lease, renew, signal) {
      for (let found = batchMax; found === batchMax && !signal.aborted; ) {
        const isHeld = await ifHeld(deps.db(), lease, async (trx) => {
          await share(trx);
          const fading = await store.listFading(trx, (await readNowMs(trx)) - staleMs, batchMax);
          found = fading.length;
          await store.lockSites(trx, [...new Set(fading.map(({ siteId }) => siteId))]);
          const ids = fading.map(({ id }) => id);
          if (found > 0) await regroup(deps, trx, await store.listRowsOfIncidents(trx, ids), ids);
          return true;
        });
        if (!isHeld || (found === batchMax && !(await renew()))) return;
      }
    },
  });
}
