/** The fact store on PostgreSQL: tables partitioned by day (pairs by hour), filled by COPY. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NameApplication } from '../contract/collect-facts.ts';
import { controlTransaction } from '../contract/control-scope.ts';
import { explainRows } from '../contract/explain-rows.ts';
import type { FactStore } from '../contract/fact-store.ts';
import type { SiteRange } from '../contract/facts.ts';
import { hoursOf } from '../contract/peer-networks.ts';
import * as ranges from './address-range-store.ts';
import * as addresses from './address-store.ts';
import { appendUploads } from './append-store.ts';
import * as applications from './application-store.ts';
import * as details from './detail-store.ts';
import * as devices from './device-store.ts';
import { explore } from './explore-store.ts';
import { createPartitionMaker } from './partition-store.ts';
import * as peers from './peer-store.ts';
import { rejudgeAddresses } from './rejudge-store.ts';
import { rollUp } from './roll-up.ts';
import { type Coverage, readCovered } from './span-store.ts';

export type { NameApplication } from '../contract/collect-facts.ts';

export interface FactStoreDeps {
  db: () => Queryable;
  nameApplication: NameApplication;
}

/** The default engine. */
export function createFactStore(deps: FactStoreDeps): FactStore {
  const { db } = deps;
  const partitions = createPartitionMaker();
  const covered = <T>(range: SiteRange, work: (trx: Queryable, coverage: Coverage) => Promise<T>) =>
    readCovered(db(), range, work);
  return {
    prepare: (minutes) => partitions.ensureMinutes(db(), minutes),
    append: (uploads, scope) => appendUploads(controlTransaction(scope), uploads, deps.nameApplication),
    rejudge: (changed, scope) => rejudgeAddresses(controlTransaction(scope), changed),
    rollUp: (hours, mayGoOn) => rollUp(db(), partitions, hours, mayGoOn),
    readAddress: async (range) => (await ranges.readAddresses(db(), [range]))[0]!,
    readAddresses: (of) => ranges.readAddresses(db(), of),
    explainAddress: async (range) => explainRows(await addresses.explainAddress(db(), range)),
    listForeign: (range, limit) => addresses.listForeign(db(), range, limit),
    sumSite: (range) => covered(range, (trx, coverage) => addresses.sumSite(trx, coverage, range)),
    listTopAddresses: (range, limit) =>
      covered(range, (trx, coverage) => devices.listTopAddresses(trx, coverage, limit)),
    listGaps: (range, limit) => addresses.listGaps(db(), range, limit),
    listCaptures: (siteId, sinceMinute) => addresses.listCaptures(db(), siteId, sinceMinute),
    listOutages: (sinceMinute) => addresses.listOutages(db(), sinceMinute),
    listLosses: (fromMinute, toMinute) => addresses.listLosses(db(), fromMinute, toMinute),
    sumCollection: (range) => addresses.sumCollection(db(), range),
    newestMinutes: () => addresses.newestMinutes(db()),
    readAddressApplications: async (range) =>
      (await ranges.readAddressesApplications(db(), [range], null))![0]!,
    readAddressesApplications: (of, rowsMax) => ranges.readAddressesApplications(db(), of, rowsMax),
    sumAddressApplications: (range) =>
      covered(range, (trx, coverage) => details.sumAddressApplications(trx, coverage, range)),
    rankApplications: (range) =>
      covered(range, (trx, coverage) => applications.rankApplications(trx, coverage, range)),
    stepApplications: (range) =>
      covered(range, (trx, coverage) => applications.stepApplications(trx, coverage, range)),
    readApplication: (range) =>
      covered(range, (trx, coverage) => details.readApplication(trx, coverage, range)),
    listPairs: (range, limit) => details.listPairs(db(), range, limit),
    sumDevices: (range, keys) => covered(range, (trx, coverage) => devices.sumDevices(trx, coverage, keys)),
    stepDevice: (range) => covered(range, (trx, coverage) => devices.stepDevice(trx, coverage, range)),
    explore: (asked) => covered(asked, (trx, coverage) => explore(trx, coverage, asked)),
    listPeerNetworks: (range, limit) =>
      covered(hoursOf(range), (trx, coverage) => peers.listPeerNetworks(trx, coverage, range, limit)),
    findPeers: (range, limit) =>
      covered(hoursOf(range), (trx, coverage) => peers.findPeers(trx, coverage, range.prefix, limit)),
    sumOwned: (range) => covered(range, (trx, coverage) => devices.sumOwned(trx, coverage)),
  };
}
