/** Stores what detectors say in uploads. */

import type { DetectorEpoch } from '#contracts/sensor-api/detection.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import { keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createPartitionMaker, insertEpochs, insertMinutes, type ReportedMinute } from './store.ts';

/** Reports and epochs of one sensor. */
export interface SensorDetection {
  siteId: number;
  sensorId: number;
  minutes: readonly ReportedMinute[];
  epochs: readonly DetectorEpoch[];
}

/** Consumes `detection`. Reports outside the retention time are left out, because they must not create partitions for years. */
export function createDetectionConsumer(db: () => Queryable): UploadConsumer<SensorDetection> {
  const partitions = createPartitionMaker();
  return {
    kind: 'detection',
    select({ siteId, sensorId, nowMs, upload: { minutes, epochs = [] } }) {
      const now = nowMs / 1000;
      const reported = minutes.filter(
        (one): one is ReportedMinute =>
          one.detector !== undefined && one.minute > now - keptSeconds && one.minute < now + aheadSecondsMax,
      );
      return reported.length + epochs.length === 0 ? null : { siteId, sensorId, minutes: reported, epochs };
    },
    async prepare(uploads) {
      for (const { minutes } of uploads)
        await partitions.ensureDays(
          db(),
          minutes.map(({ minute }) => minute),
        );
    },
    async apply(trx, uploads) {
      for (const { siteId, sensorId, minutes, epochs } of uploads) {
        await insertEpochs(trx, sensorId, epochs);
        await insertMinutes(trx, { siteId, sensorId }, minutes);
      }
    },
  };
}
