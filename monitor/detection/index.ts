/**
 * What the detectors of captures say of each minute: how completely they watched, what they protected, and of each protected
 * address the largest rates and the attack traffic.
 *
 * Only a complete report inside one epoch can say that there was no attack (NET-2.4.5); a minute without a report is unknown.
 * An upload counts once, and parts of one minute add. Everything is kept for three months.
 */

import type { DetectorEpoch } from '#contracts/sensor-api/detection.ts';
import { aheadSecondsMax } from '#contracts/sensor-api/http.ts';
import { keptSeconds, type UploadConsumer } from '#monitor/intake/index.ts';
import { checkAddresses } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';
import { createPartitionMaker, insertEpochs, insertMinutes, type ReportedMinute } from './store.ts';

export function createDetection({ db, reader = db }: { db: () => Queryable; reader?: () => Queryable }) {
  return {
    /** Takes detector minutes and epochs of uploads. */
    consumer: createDetectionConsumer(db),
    /**
     * The largest rates of an address in [fromMs, toMs), in time order: one row for each capture, direction and minute. Reports
     * of sensors that may not speak for the address are left out.
     */
    async listMaxima(
      siteId: number,
      address: string,
      fromMs: number,
      toMs: number,
    ): Promise<store.MaximaRow[]> {
      const rows = await store.listMaxima(reader(), siteId, address, fromMs, toMs);
      const sensors = [...new Set(rows.map(({ sensorId }) => sensorId))];
      const isForeign = await checkAddresses(
        reader(),
        sensors.map((sensorId) => ({ sensorId, subject: address })),
      );
      return rows.filter(({ sensorId, minute }) => !isForeign(sensorId, address, minute));
    },
  };
}

// Stores what detectors say in uploads.

/** Reports and epochs of one sensor. */
interface SensorDetection {
  siteId: number;
  sensorId: number;
  minutes: readonly ReportedMinute[];
  epochs: readonly DetectorEpoch[];
}

/** Consumes `detection`. Reports outside the retention time are left out, because they must not create partitions for years. */
function createDetectionConsumer(db: () => Queryable): UploadConsumer<SensorDetection> {
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
