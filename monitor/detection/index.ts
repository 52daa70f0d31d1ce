/**
 * What the detectors of captures say of each minute: how completely they watched, what they protected, and of each protected
 * address the largest rates and the attack traffic.
 *
 * Only a complete report inside one epoch can say that there was no attack (NET-2.4.5); a minute without a report is unknown.
 * An upload counts once, and parts of one minute add. Everything is kept for three months.
 */
import { checkAddresses } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createDetectionConsumer } from './consume-detection.ts';
import * as store from './store.ts';

export type Detection = ReturnType<typeof createDetection>;

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
