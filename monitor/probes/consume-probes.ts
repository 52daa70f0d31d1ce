/** Stores probe results from uploads. */
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import type { ProbeResult } from '#contracts/sensor-api/telemetry.ts';
import { keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createPartitionMaker, insertResults } from './results-store.ts';

/** Results of one sensor. */
export interface SensorResults {
  siteId: number;
  sensorId: number;
  results: readonly ProbeResult[];
}

/**
 * Consumes `probes`. Results outside the retention time are left out, because a wrong clock must not create partitions
 * for years.
 */
export function createProbeConsumer(db: () => Queryable): UploadConsumer<SensorResults> {
  const partitions = createPartitionMaker();
  return {
    kind: 'probes',
    times: ({ probes = [] }) => ({ mentioned: probes.map(({ minute }) => minute) }),
    select({ siteId, sensorId, nowMs, upload: { probes = [] } }) {
      const now = nowMs / 1000;
      const results = probes.filter(
        ({ minute }) => minute > now - keptSeconds && minute < now + aheadSecondsMax,
      );
      return results.length === 0 ? null : { siteId, sensorId, results };
    },
    async prepare(uploads) {
      for (const { results } of uploads) await partitions.ensureDays(db(), results);
    },
    async apply(trx, uploads) {
      for (const { results, ...origin } of uploads) await insertResults(trx, origin, results);
    },
  };
}
