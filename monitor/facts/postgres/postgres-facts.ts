/** The fact store on PostgreSQL: tables partitioned by day (pairs by hour), filled by COPY. */
import { bind } from '#common/bind/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { type Queryable, withCustomPlans } from '#service-kit/postgres/index.ts';
import type { NameApplication } from '../contract/collect-facts.ts';
import { controlTransaction } from '../contract/control-scope.ts';
import type { ExploredReading, ExploredView } from '../contract/exploration.ts';
import type { FactStore } from '../contract/fact-store.ts';
import type { SiteRange } from '../contract/facts.ts';
import { explainRows } from '../contract/facts.ts';
import { hoursOf } from '../contract/peer-networks.ts';
import { noteAppend, noteChanges, postgresIdentity } from '../control/engine-use-store.ts';
import * as gaps from '../control/gap-store.ts';
import * as ranges from './address-range-store.ts';
import * as addresses from './address-store.ts';
import { appendUploads } from './append-store.ts';
import * as applications from './application-store.ts';
import * as details from './detail-store.ts';
import * as devices from './device-store.ts';
import { explore } from './explore-store.ts';
import { rejudgeAddresses } from './judge-store.ts';
import { createPartitionMaker } from './partition-store.ts';
import * as peers from './peer-store.ts';
import { rollUp } from './roll-up.ts';
import { type Coverage, groupByHash, limitStatements, readCovered } from './span-store.ts';

export interface FactStoreDeps {
  db: () => Queryable;
  nameApplication: NameApplication;
  /** Longest time of a statement of `explore`, milliseconds. */
  exploreMs?: number;
}

/** A chart of three months of a large site takes a second or two; what takes longer reads minutes that it need not. */
const exploreMsDefault = 10_000;

/** PostgreSQL's code of a statement that was stopped. */
const queryCanceled = '57014';

/** The default engine. */
export function createFactStore(deps: FactStoreDeps): FactStore {
  const { exploreMs = exploreMsDefault } = deps;
  const db = () => withCustomPlans(deps.db());
  const partitions = createPartitionMaker();
  const covered = <T>(range: SiteRange, work: (trx: Queryable, coverage: Coverage) => Promise<T>) =>
    readCovered(db(), range, work);
  const exploreFor = (reading: ExploredReading, views: readonly ExploredView[]) => {
    // Together they may take as long as each by itself.
    const limitMs = exploreMs * views.length;
    return withinTime(limitMs, () =>
      covered(reading, async (trx, coverage) => {
        await limitStatements(trx, limitMs);
        await groupByHash(trx);
        return explore(trx, coverage, reading, views);
      }),
    );
  };
  const withinTime = async <T>(limitMs: number, work: () => Promise<T>) => {
    try {
      return await work();
    } catch (error) {
      if ((error as { code?: unknown }).code !== queryCanceled) throw error;
      const message = `This took longer than ${limitMs / 1000} seconds and was stopped. Choose a shorter range, add a filter by server, address or application, or leave out a shorter step than the automatic one.`;
      throw new CodedError('facts.too_slow', message, {}, error);
    }
  };
  return {
    prepare: (minutes) => partitions.ensureMinutes(db(), minutes),
    async append(uploads, scope) {
      const trx = controlTransaction(scope);
      await noteAppend(trx, postgresIdentity, uploads);
      await appendUploads(trx, uploads, deps.nameApplication);
    },
    async rejudge(changed, scope) {
      const trx = controlTransaction(scope);
      await noteChanges(trx, postgresIdentity, await rejudgeAddresses(trx, changed));
    },
    rollUp: (hours, mayGoOn) => rollUp(db(), partitions, hours, mayGoOn),
    readAddress: async (range) => (await ranges.readAddresses(db(), [range]))[0]!,
    explainAddress: async (range) => explainRows(await addresses.explainAddress(db(), range)),
    ...bind(db, {
      ...{ readAddresses: ranges.readAddresses, readAddressesApplications: ranges.readAddressesApplications },
      ...{ listSpeakers: addresses.listSpeakers, listForeign: addresses.listForeign },
      ...{ listCaptures: addresses.listCaptures, listOutages: addresses.listOutages },
      ...{ listLosses: addresses.listLosses, sumCollection: addresses.sumCollection },
      ...{ newestMinutes: addresses.newestMinutes, listGaps: gaps.listGaps, listPairs: details.listPairs },
    }),
    sumSite: (range) => covered(range, (trx, coverage) => addresses.sumSite(trx, coverage, range)),
    listTopAddresses: (range, limit) =>
      covered(range, (trx, coverage) => devices.listTopAddresses(trx, coverage, limit)),
    readAddressApplications: async (range) =>
      (await ranges.readAddressesApplications(db(), [range], null))![0]!,
    sumAddressApplications: (range) =>
      covered(range, (trx, coverage) => details.sumAddressApplications(trx, coverage, range)),
    rankApplications: (range) =>
      covered(range, (trx, coverage) => applications.rankApplications(trx, coverage, range)),
    readApplication: (range) =>
      covered(range, (trx, coverage) => details.readApplication(trx, coverage, range)),
    sumDevices: (range, keys) => covered(range, (trx, coverage) => devices.sumDevices(trx, coverage, keys)),
    stepDevice: (range) => covered(range, (trx, coverage) => devices.stepDevice(trx, coverage, range)),
    explore: async (asked) => (await exploreFor(asked, [asked]))[0]!,
    exploreTogether: exploreFor,
    listPeerNetworks: (range, limit) =>
      covered(hoursOf(range), (trx, coverage) => peers.listPeerNetworks(trx, coverage, range, limit)),
    findPeers: (range, limit) =>
      covered(hoursOf(range), (trx, coverage) => peers.findPeers(trx, coverage, range.prefix, limit)),
  };
}
