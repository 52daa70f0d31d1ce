/**
 * Counters of addresses that were left out of uploads, because no link carries them or no packets hold them.
 *
 * An address whose counters were left out in a minute is unknown in it, never zero. Of each sensor it is known when that
 * happened last and to how many rows, for its page and for an alert.
 */
import { countSetAside, type SetAside, type SetAsideHost } from '#contracts/sensor-api/set-aside.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface SetAsides {
  /** Notes what was left out of uploads; give the transaction that applies them. */
  note(
    trx: Queryable,
    uploads: readonly { siteId: number; sensorId: number; setAside: SetAside }[],
  ): Promise<void>;
  /** Notes how many rows were left out of a sensor's live windows. */
  noteLive(sensorId: number, rows: number): Promise<void>;
  /** Minutes of each range's address in which counters of it were left out; in the order of the ranges. */
  listMinutes(ranges: readonly store.AddressMinutes[]): Promise<number[][]>;
  /** The newest of a sensor. */
  listOfSensor(siteId: number, sensorId: number, limit: number): Promise<SetAsideHost[]>;
}

export function createSetAsides({ db }: { db: () => Queryable }): SetAsides {
  return {
    async note(trx, uploads) {
      const rows = uploads.flatMap(({ siteId, sensorId, setAside }) =>
        setAside.hosts.map((host) => ({ siteId, sensorId, ...host })),
      );
      if (rows.length > 0) await store.insertRows(trx, rows);
      const counts = new Map<number, number>();
      for (const { sensorId, setAside } of uploads) {
        const count = countSetAside(setAside);
        if (count > 0) counts.set(sensorId, (counts.get(sensorId) ?? 0) + count);
      }
      await store.addCounts(
        trx,
        [...counts].map(([sensorId, minuteRows]) => ({ sensorId, minuteRows, liveRows: 0 })),
      );
    },
    noteLive: (sensorId, liveRows) => store.addCounts(db(), [{ sensorId, minuteRows: 0, liveRows }]),
    listMinutes: (ranges) => store.listMinutes(db(), ranges),
    listOfSensor: (siteId, sensorId, limit) => store.listOfSensor(db(), siteId, sensorId, limit),
  };
}
