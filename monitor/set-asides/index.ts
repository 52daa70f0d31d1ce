/**
 * Impossible counters of addresses that were left out of uploads.
 *
 * In that minute the address is unknown, never zero. For each sensor the time of the last occurrence and the number of
 * rows are stored, for its page and for an alert.
 */
import { countSetAside, type SetAside } from '#contracts/sensor-api/set-aside.ts';
import type { UploadConsumer } from '#monitor/intake/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** Rows that were left out of one upload. */
export interface SensorSetAside {
  siteId: number;
  sensorId: number;
  setAside: SetAside;
}

export type SetAsides = ReturnType<typeof createSetAsides>;

export function createSetAsides({ db }: { db: () => Queryable }) {
  return {
    /** Stores the rows that were left out of uploads. */
    consumer: {
      kind: 'set-asides',
      select: ({ siteId, sensorId, setAside }) =>
        countSetAside(setAside) > 0 ? { siteId, sensorId, setAside } : null,
      apply: noteSetAsides,
    } satisfies UploadConsumer<SensorSetAside>,
    /** Counts the rows that were left out of a sensor's live windows. */
    noteLive: (sensorId: number, liveRows: number) =>
      store.addCounts(db(), [{ sensorId, minuteRows: 0, liveRows }]),
    /** For each range, the minutes in which counters of its address were left out, in the order of the ranges. */
    listMinutes: (ranges: readonly store.AddressMinutes[]) => store.listMinutes(db(), ranges),
    /** The newest rows of a sensor. */
    listOfSensor: (siteId: number, sensorId: number, limit: number) =>
      store.listOfSensor(db(), siteId, sensorId, limit),
  };
}

async function noteSetAsides(trx: Queryable, uploads: readonly SensorSetAside[]): Promise<void> {
  const rows = uploads.flatMap(({ siteId, sensorId, setAside }) =>
    setAside.hosts.map((host) => ({ siteId, sensorId, ...host })),
  );
  if (rows.length > 0) await store.insertRows(trx, rows);
  const counts = new Map<number, number>();
  for (const { sensorId, setAside } of uploads)
    counts.set(sensorId, (counts.get(sensorId) ?? 0) + countSetAside(setAside));
  await store.addCounts(
    trx,
    [...counts].map(([sensorId, minuteRows]) => ({ sensorId, minuteRows, liveRows: 0 })),
  );
}
