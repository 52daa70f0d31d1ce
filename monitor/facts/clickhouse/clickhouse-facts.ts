/**
 * The fact store on ClickHouse. Facts are rows of its tables, as they came; every answer is computed from them, so there is nothing to
 * roll up. Captures, gaps, notes of appended uploads and verdicts that changed are control data and stay in PostgreSQL.
 */
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { NameApplication } from '../contract/collect-facts.ts';
import { controlTransaction } from '../contract/control-scope.ts';
import type { FactEngineState, FactStore } from '../contract/fact-store.ts';
import { explainRows } from '../contract/facts.ts';
import { type EngineIdentity, noStore, noteAppend, noteChanges } from '../control/engine-use-store.ts';
import * as gaps from '../control/gap-store.ts';
import * as addresses from './address-store.ts';
import { appendUploads } from './append.ts';
import * as applications from './application-store.ts';
import { createArrivals } from './arrival-store.ts';
import * as details from './detail-store.ts';
import * as devices from './device-store.ts';
import { createEngine, type Engine, type FactClient, readEngineState, readStoreId } from './engine-store.ts';
import { explore } from './explore-store.ts';
import * as pairs from './pair-store.ts';
import * as peers from './peer-store.ts';
import * as sites from './site-store.ts';
import { migrate } from './table-store.ts';
import { rejudgeAddresses } from './verdict-store.ts';

export interface ClickhouseFacts extends FactStore {
  readonly engine: Engine;
  /** Known after \`migrate\`. */
  readonly identity: EngineIdentity;
  /** Makes or renews the tables; before any other call. Throws `facts.unavailable` and `facts.wrong_version`. */
  migrate(): Promise<void>;
  /** Never throws. */
  state(): Promise<FactEngineState>;
}

const exploreMsDefault = 10_000;

export function createClickhouseFacts(deps: {
  /** Of the database that holds the facts. */
  client: FactClient;
  /** PostgreSQL with the control data. */
  db: () => Queryable;
  nameApplication: NameApplication;
  /** For messages. */
  place?: string;
  /** Longest time of a statement of `explore`, milliseconds. */
  exploreMs?: number;
}): ClickhouseFacts {
  const { client, db, nameApplication, exploreMs = exploreMsDefault } = deps;
  const engine = createEngine(client);
  const sources = { engine, db };
  const arrivals = createArrivals(engine);
  const identity: EngineIdentity = { storeId: noStore, place: deps.place ?? 'ClickHouse' };
  return {
    engine,
    identity,
    async migrate() {
      await migrate(engine);
      identity.storeId = (await readStoreId(engine)) ?? noStore;
    },
    state: () => readEngineState(engine),
    // Partitions come with their rows.
    prepare: async () => {},
    async append(uploads, scope) {
      const trx = controlTransaction(scope);
      await noteAppend(trx, identity, uploads);
      await appendUploads({ engine, arrivals, db, nameApplication }, trx, uploads);
    },
    async rejudge(changed, scope) {
      const trx = controlTransaction(scope);
      await noteChanges(trx, identity, await rejudgeAddresses(engine, trx, changed));
    },
    rollUp: async () => {},
    readAddress: async (range) => (await addresses.readAddresses(sources, [range]))[0]!,
    readAddresses: (ranges) => addresses.readAddresses(sources, ranges),
    explainAddress: async (range) => explainRows(await addresses.explainAddress(sources, range)),
    listSpeakers: (siteId, asked) => addresses.listSpeakers(sources, siteId, asked),
    listForeign: (range, limit) => addresses.listForeign(sources, range, limit),
    sumSite: (range) => sites.sumSite(sources, range),
    listTopAddresses: (range, limit) => devices.listTopAddresses(sources, range, limit),
    listGaps: (range, limit) => gaps.listGaps(db(), range, limit),
    listCaptures: (siteId, sinceMinute) => sites.listCaptures(sources, siteId, sinceMinute),
    listLosses: (fromMinute, toMinute) => sites.listLosses(sources, fromMinute, toMinute),
    listOutages: (sinceMinute) => sites.listOutages(sources, sinceMinute),
    sumCollection: (range) => sites.sumCollection(engine, range),
    newestMinutes: () => sites.newestMinutes(sources),
    readAddressApplications: async (range) =>
      (await applications.readAddressesApplications(sources, [range], null))![0]!,
    readAddressesApplications: (ranges, rowsMax) =>
      applications.readAddressesApplications(sources, ranges, rowsMax),
    sumAddressApplications: (range) => applications.sumAddressApplications(sources, range),
    rankApplications: (range) => applications.rankApplications(sources, range),
    readApplication: (range) => details.readApplication(sources, range),
    listPairs: (range, limit) => pairs.listPairs(sources, range, limit),
    sumDevices: (range, keys) => devices.sumDevices(sources, range, keys),
    stepDevice: (range) => devices.stepDevice(sources, range),
    explore: (asked) => explore(sources, asked, exploreMs),
    exploreTogether: (reading, views) =>
      Promise.all(views.map((view) => explore(sources, { ...reading, ...view }, exploreMs))),
    listPeerNetworks: (range, limit) => peers.listPeerNetworks(sources, range, limit),
    findPeers: (range, limit) => peers.findPeers(sources, range, limit),
  };
}
