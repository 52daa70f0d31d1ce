/**
 * The fact store on ClickHouse. Facts are rows of its tables, as they came; every answer is computed from them, so there is nothing to
 * roll up. Captures, gaps, notes of appended uploads and verdicts that changed are control data and stay in PostgreSQL.
 */
import { bind } from '#common/bind/index.ts';
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
    explainAddress: async (range) => explainRows(await addresses.explainAddress(sources, range)),
    listGaps: (range, limit) => gaps.listGaps(db(), range, limit),
    sumCollection: (range) => sites.sumCollection(engine, range),
    readAddressApplications: async (range) =>
      (await applications.readAddressesApplications(sources, [range], null))![0]!,
    ...bind(() => sources, {
      ...{ readAddresses: addresses.readAddresses, listSpeakers: addresses.listSpeakers },
      ...{ listForeign: addresses.listForeign, newestMinutes: sites.newestMinutes, sumSite: sites.sumSite },
      ...{ listCaptures: sites.listCaptures, listLosses: sites.listLosses, listOutages: sites.listOutages },
      ...{ listTopAddresses: devices.listTopAddresses, sumDevices: devices.sumDevices },
      ...{ stepDevice: devices.stepDevice, readApplication: details.readApplication },
      readAddressesApplications: applications.readAddressesApplications,
      sumAddressApplications: applications.sumAddressApplications,
      rankApplications: applications.rankApplications,
      ...{ listPairs: pairs.listPairs, listPeerNetworks: peers.listPeerNetworks, findPeers: peers.findPeers },
    }),
    explore: (asked) => explore(sources, asked, exploreMs),
    exploreTogether: (reading, views) =>
      Promise.all(views.map((view) => explore(sources, { ...reading, ...view }, exploreMs))),
  };
}
