/**
 * Which applications local addresses used, by evidence (NET-2.2.3), and who talked to whom for the last 24 hours.
 *
 * Facts come in through `addMinutes` in the inbox's transaction. Uplink and bridge see the same traffic: one vantage
 * owns each site-minute, scope and direction (NET-2.2.5), and one owns each minute and direction of an exact address;
 * bytes of two vantages are never added.
 */
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { addMinutes } from './add-minutes.ts';
import { type ApplicationView, listApplicationSteps, listApplications } from './list-applications.ts';
import * as store from './store.ts';

export { describeService } from './catalog.ts';
export { type ApplicationView, applicationViews } from './list-applications.ts';
export type { AddressApplication, ApplicationRow, ApplicationStep, ApplicationUse } from './store.ts';

export interface Applications {
  /** Makes the partitions; outside the transaction that adds to them. */
  prepare(minutes: readonly number[], nowMs: number): Promise<void>;
  /** Adds what was used. `captures` are the ids that traffic gave the upload's captures. */
  addMinutes(
    trx: Queryable,
    siteId: number,
    captures: ReadonlyMap<string, number>,
    minutes: readonly TelemetryMinute[],
    nowMs: number,
  ): Promise<void>;
  /**
   * What an exact local address used over the Internet, by minute from `fromMinute` (inclusive) to `toMinute`
   * (exclusive), both directions of use: as client (outbound) and as host of a service (inbound) (NET-2.4.4).
   */
  readAddressApplications(
    siteId: number,
    address: string,
    fromMinute: number,
    toMinute: number,
  ): Promise<store.AddressApplication[]>;
  /** A site's applications of a range by bytes, largest first. */
  list(
    siteId: number,
    view: ApplicationView,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Promise<store.ApplicationUse>;
  /** Bytes over time of some applications of the list, and under a null name of all others; steps without any are left out. */
  listSteps(range: {
    siteId: number;
    view: ApplicationView;
    fromMs: number;
    toMs: number;
    stepSeconds: number;
    names: readonly string[];
  }): Promise<store.ApplicationStep[]>;
}

export function createApplications(deps: { db: () => Queryable }): Applications {
  const { db } = deps;
  const partitions = store.createPartitionMaker();
  return {
    prepare: (minutes, nowMs) => partitions.ensure(db(), minutes, nowMs),
    addMinutes,
    readAddressApplications: (siteId, address, fromMinute, toMinute) =>
      store.readAddressApplications(db(), { siteId, address, fromMinute, toMinute }),
    listSteps: (range) => listApplicationSteps(db(), range),
    list: (siteId, view, fromMs, toMs, limit) =>
      listApplications(db(), { siteId, view, fromMs, toMs, limit }),
  };
}
