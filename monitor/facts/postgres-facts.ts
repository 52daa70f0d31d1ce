/** The fact store on PostgreSQL: tables partitioned by day (pairs by hour), filled by COPY. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as addresses from './address-store.ts';
import { appendUploads } from './append-store.ts';
import * as applications from './application-store.ts';
import type { NameApplication } from './collect-facts.ts';
import * as details from './detail-store.ts';
import * as devices from './device-store.ts';
import { explainRows } from './explain-rows.ts';
import type { FactStore } from './index.ts';
import { createPartitionMaker } from './partition-store.ts';
import { rollUpMinutes } from './roll-up.ts';
import { rawCoverage } from './span-store.ts';

export type { NameApplication } from './collect-facts.ts';

export interface FactStoreDeps {
  db: () => Queryable;
  nameApplication: NameApplication;
}

/** The default engine. */
export function createFactStore(deps: FactStoreDeps): FactStore {
  const { db } = deps;
  const partitions = createPartitionMaker();
  return {
    prepare: (minutes) => partitions.ensureMinutes(db(), minutes),
    append: (trx, uploads) => appendUploads(trx, uploads, deps.nameApplication),
    rollUp: () => rollUpMinutes(db()),
    readAddress: (range) => addresses.readAddress(db(), range),
    explainAddress: async (range) => explainRows(await addresses.explainAddress(db(), range)),
    sumSite: (range) => addresses.sumSite(db(), range),
    listTopAddresses: (range, limit) => devices.listTopAddresses(db(), rawCoverage(range), limit),
    listGaps: (range, limit) => addresses.listGaps(db(), range, limit),
    listCaptures: (siteId, sinceMinute) => addresses.listCaptures(db(), siteId, sinceMinute),
    sumCollection: (range) => addresses.sumCollection(db(), range),
    newestMinutes: () => addresses.newestMinutes(db()),
    readAddressApplications: (range) => applications.readAddressApplications(db(), range),
    rankApplications: (range) => applications.rankApplications(db(), rawCoverage(range), range),
    stepApplications: (range) => applications.stepApplications(db(), rawCoverage(range), range),
    readApplication: (range) => details.readApplication(db(), rawCoverage(range), range),
    listPairs: (range, limit) => details.listPairs(db(), range, limit),
    sumDevices: (range, keys) => devices.sumDevices(db(), rawCoverage(range), keys),
    stepDevice: (range) => devices.stepDevice(db(), rawCoverage(range), range),
    sumOwned: (range) => devices.sumOwned(db(), rawCoverage(range)),
  };
}
