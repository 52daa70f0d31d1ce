/**
 * Virtual servers: provisioning, power and destruction, and who may see them.
 *
 * Customer API, portal and console are doors to the same operations. Another tenant's server, a destroyed one and one
 * that never was give the same answer everywhere, because the owner is part of the query.
 */

import { formatAddress } from '#common/ip/index.ts';
import { readAddress, readAddressRange } from '#common/ip/typed-address.ts';
import { type Actor, requireStaff } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import type { Networks } from '#operations/networks/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import { searchAddresses, searchServers, searchWords } from '#operations/views/search-store.ts';
import {
  countByStatus,
  countServers,
  listServers,
  type ServerFilter,
} from '#operations/views/server-list-store.ts';
import {
  findServer,
  listInventory as listInventoryRows,
  listOwnedServers,
  type Server,
  type ServerAction,
} from '#operations/views/server-store.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { LoopDeps } from '#service-kit/leases/index.ts';
import { createLookup, createSharing, type Queryable } from '#service-kit/postgres/index.ts';
import { countActions, findAction, findActionPassword, listActions } from './action-store.ts';
import { notFound, scopeOf, scopeOfTenant } from './authorise.ts';
import { machineCalls } from './change-machine.ts';
import {
  type ChangeHooks,
  cancelAction,
  changePower,
  destroyServer,
  type PowerRequest,
} from './change-server.ts';
import { type DescribeServerInput, describeServer } from './describe-server.ts';
import { createDriftLoop, mendDrift } from './drift.ts';
import { type Drift, listDrifts } from './drift-store.ts';
import { serverJobs } from './jobs.ts';
import {
  findFailureDetail,
  type Resolution,
  resolveProvisioning,
  retryProvisioning,
} from './resolve-provisioning.ts';
import { createPowerObserver } from './run-power.ts';
import { statusOf } from './server.ts';
import { attachAddress, detachAddress } from './server-addresses.ts';
import { snapshotCalls } from './snapshots.ts';
import * as store from './store.ts';

export { clearActionPasswords } from './action-store.ts';
export { addServer, type HeldServer, type RequestedServer } from './add-server.ts';
export { notFound as serverNotFound, type Requester, requester, requireWrite } from './authorise.ts';
export type { ChangeHooks } from './change-server.ts';
export { chargeServerHours } from './charge-server-hours.ts';
export { monthlyMaxQuanta } from './charge-snapshots.ts';
export { findDrift } from './drift.ts';
export type { Drift } from './drift-store.ts';
export { observePower } from './run-power.ts';
export { macOf, newRootPassword, statusOf, supersededBy } from './server.ts';
export { holdSnapshot, releaseHeldSnapshot } from './snapshot-store.ts';
export { backdateServers, lockAttachable, lockLiving, nextServerId } from './store.ts';
export * from './validate-server-fields.ts';

/** One VM as the monitor imports it. */
export interface InventoryVm {
  id: number;
  clusterId: number;
  node: string | null;
  name: string;
  state: string;
  updatedAt: Date;
  interfaces: {
    id: number;
    macAddress: string;
    bridge: string | null;
    vlan: number | null;
    addresses: string[];
  }[];
}

export type InventoryPage = Awaited<ReturnType<typeof listInventory>>;

/** Methods with a `tenantId` act within that tenant; null stands for everything that the actor reaches. */
export type Servers = ReturnType<typeof createServers>;

export function createServers(deps: ServersDeps) {
  const scope = (actor: Actor, tenantId: number | null) =>
    tenantId === null ? scopeOf(actor) : scopeOfTenant(actor, tenantId);
  const lookup = createServerLookup(deps);
  return {
    /** What it does beside the calls. */
    work: {
      jobHandlers: serverJobs(deps),
      parts: [createPowerObserver(deps), createDriftLoop(deps)],
    } satisfies FeatureWork,
    findServer(actor: Actor, tenantId: number | null, serverId: number): Promise<Server | null> {
      const within = scope(actor, tenantId);
      // What is no id fails the statement, and only its own may fail with it.
      const isShared = within !== 'all' && within.length === 1 && Number.isSafeInteger(serverId);
      return isShared ? lookup(`${within[0]}/${serverId}`) : findServer(deps.db(), within, serverId);
    },
    /** The same inside a transaction. */
    findServerIn: (tx: Queryable, actor: Actor, tenantId: number | null, serverId: number) =>
      findServer(tx, scope(actor, tenantId), serverId),
    ...createLists(deps, scope),
    /** Living servers by the beginnings of words of their names, by id or by address; at most `limit` of each kind. */
    search: (actor: Actor, typed: string, limit: number) =>
      findServers(deps.db(), scopeOf(actor), typed, limit),
    /** Quanta that each of these servers has cost this month; those without a charge are left out. */
    costOfMonth: (actor: Actor, serverIds: readonly number[]) =>
      store.listMonthCharges(deps.db(), scopeOf(actor), serverIds),
    /** Quanta that a tenant's servers will still cost until the month ends. */
    remainingCostOfMonth: async (actor: Actor, tenantId: number) =>
      scopeOfTenant(actor, tenantId).length === 0 ? 0 : store.sumRemainingMonth(deps.db(), tenantId),
    /** Living servers by status; statuses that none has are left out. */
    countByStatus: (actor: Actor, tenantId: number | null) =>
      countByStatus(deps.db(), scope(actor, tenantId)),
    countOfTenants: (tenantIds: readonly number[]) => store.countOfTenants(deps.db(), tenantIds),
    /** Throws `servers.not_found`, `servers.busy`, `servers.not_ready`. */
    changePower: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      request: PowerRequest,
      hooks?: ChangeHooks,
    ) => changePower(deps, actor, scope(actor, tenantId), serverId, request, hooks),
    /** What the hypervisors of this server's cluster can do. */
    capabilitiesOf: (server: Pick<Server, 'driver'>) => deps.hypervisors.capabilitiesOf(server.driver),
    /** Throws what `changePower` throws, `servers.unsupported` and for the address what `server-addresses.ts` says. */
    attachAddress: (
      actor: Actor,
      tenantId: number,
      input: { serverId: number; addressId: number },
      hooks?: ChangeHooks,
    ) => {
      const of = { actor, scope: scope(actor, tenantId), serverId: input.serverId };
      return attachAddress(deps, of, input.addressId, hooks);
    },
    detachAddress: (actor: Actor, tenantId: number, addressId: number, hooks?: ChangeHooks) =>
      detachAddress(deps, { actor, scope: scope(actor, tenantId), tenantId }, addressId, hooks),
    ...machineCalls(deps, scope),
    ...snapshotCalls(deps, scope),
    /** The password that an action sets, for repetitions of the call that asked for it; null a day later. */
    findActionPassword: (actionId: number) => findActionPassword(deps.db(), actionId),
    /** Throws `servers.not_found`, `servers.busy`, `servers.provisioning_failed`. */
    destroyServer: (actor: Actor, tenantId: number | null, serverId: number, hooks?: ChangeHooks) =>
      destroyServer(deps, actor, scope(actor, tenantId), serverId, hooks),
    /** Throws `servers.not_found`, `servers.invalid`. */
    describeServer: (
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      input: DescribeServerInput,
      precondition?: ChangeHooks['precondition'],
    ) => describeServer(deps, actor, scope(actor, tenantId), serverId, input, precondition),
    /** Throws `servers.not_found`, `servers.not_cancellable`. */
    cancelAction: (actor: Actor, tenantId: number | null, actionId: number) =>
      cancelAction(deps, actor, scope(actor, tenantId), actionId),
    /** An action by its own id, also of a server that is gone by now. */
    findAction: (actor: Actor, tenantId: number | null, actionId: number) =>
      findAction(deps.db(), scope(actor, tenantId), actionId),
    /** Newest first; throws `servers.not_found`. */
    async listActions(
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      limit: number,
    ): Promise<ServerAction[]> {
      if ((await findServer(deps.db(), scope(actor, tenantId), serverId)) === null) throw notFound();
      return listActions(deps.db(), serverId, limit);
    },
    /** A page of them, and how many there are on all pages. */
    async pageActions(
      actor: Actor,
      tenantId: number | null,
      serverId: number,
      { limit, beforeId }: { limit: number; beforeId: number | null },
    ): Promise<{ actions: ServerAction[]; total: number }> {
      if ((await findServer(deps.db(), scope(actor, tenantId), serverId)) === null) throw notFound();
      const [actions, total] = await Promise.all([
        listActions(deps.db(), serverId, limit, beforeId),
        countActions(deps.db(), serverId),
      ]);
      return { actions, total };
    },
    /** Where nodes hold other guests than what is sold, the oldest first; of one node or of all. Staff only. */
    async listDrifts(actor: Actor, nodeId: number | null): Promise<Drift[]> {
      requireStaff(actor);
      return listDrifts(deps.db(), nodeId);
    },
    /** Operators only; throws `servers.not_mendable` and what a resize throws. */
    mendDrift: (actor: Actor, drift: Pick<Drift, 'nodeId' | 'guest' | 'kind'>) =>
      mendDrift(deps, actor, drift),
    /** Operators only; throws `servers.not_failed`. */
    retryProvisioning: (actor: Actor, serverId: number) => retryProvisioning(deps, actor, serverId),
    /** Operators only; throws `servers.not_failed`, `servers.not_running`. */
    resolveProvisioning: (actor: Actor, serverId: number, resolution: Resolution) =>
      resolveProvisioning(deps, actor, serverId, resolution),
    /** What the hypervisor said about a failed provisioning. Staff only. */
    findFailureDetail: (actor: Actor, serverId: number) => findFailureDetail(deps, actor, serverId),
    /** The ids whose servers exist now; callers use it to filter lists. */
    listLiveIds: (serverIds: readonly number[]) => store.listLiveIds(deps.db(), serverIds),
    /** Living VMs in the order of their ids, for the admin API. `clusterIds` absent: all clusters. */
    listInventory: (query: { afterId: number; limit: number; clusterIds?: readonly number[] }) =>
      listInventory(deps, query),
  };
}

/** Servers by the key `<tenant>/<server>`; those that are asked for at once are one statement. */
function createServerLookup(deps: ServersDeps) {
  return createLookup<string, Server>(async (keys) => {
    const asked = keys.map((key) => {
      const [tenantId, id] = key.split('/').map(Number);
      return { tenantId: tenantId!, id: id! };
    });
    const found = await listOwnedServers(deps.db(), asked);
    return new Map(found.map((server) => [`${server.tenantId}/${server.id}`, server]));
  });
}

/** Lists and their lengths; those that are asked for at once are one read. */
function createLists(deps: ServersDeps, scope: (actor: Actor, tenantId: number | null) => Scope) {
  const share = createSharing();
  return {
    listServers(actor: Actor, tenantId: number | null, filter: ServerFilter): Promise<Server[]> {
      const within = scope(actor, tenantId);
      return share(JSON.stringify(['list', within, filter]), () => listServers(deps.db(), within, filter));
    },
    countServers(actor: Actor, tenantId: number | null, filter: ServerFilter): Promise<number> {
      const within = scope(actor, tenantId);
      return share(JSON.stringify(['count', within, filter]), () => countServers(deps.db(), within, filter));
    },
  };
}

async function listInventory(
  deps: ServersDeps,
  query: { afterId: number; limit: number; clusterIds?: readonly number[] },
) {
  const { rows, asOf } = await listInventoryRows(deps.db(), query);
  const vms = rows.map(({ provisioningState, powerState, ...vm }) => ({
    ...vm,
    state: statusOf({ provisioningState, powerState }),
  }));
  return { vms, nextAfterId: rows.length < query.limit ? null : (rows.at(-1)?.id ?? null), asOf };
}

/** What servers need from the rest of the program. */
export interface ServersDeps extends LoopDeps {
  catalog: Catalog;
  addresses: Addresses;
  clusters: Clusters;
  networks: Networks;
  hypervisors: Hypervisors;
  /** Snapshots that one server may have. */
  snapshotsMax: number;
  /** Price of 10^9 bytes of snapshots for a month; 0: nothing is charged. */
  snapshotGbQuanta: number;
  /** The root password that was made with the order. */
  findRootPassword: (orderId: number) => Promise<string>;
  /** Tells the job runner that there is work. */
  wake: () => void;
}

const textMax = 100;

/** Matches within the scope, at most `limit` of each kind; an empty text finds nothing. */
async function findServers(db: Queryable, scope: Scope, typed: string, limit: number) {
  const text = typed.slice(0, textMax).trim();
  const words = searchWords(text);
  if (words.length === 0) return { servers: [], addresses: [] };
  const bytes = text.endsWith('::') ? null : readAddress(text);
  const address = bytes && formatAddress(bytes);
  const range = address === null ? readAddressRange(text) : { first: address, last: address };
  const id = /^\d{1,15}$/.test(text) ? Number(text) : null;
  const [servers, addresses] = await Promise.all([
    address === null ? searchServers(db, scope, { id, words }, limit) : [],
    range ? searchAddresses(db, scope, range, limit) : [],
  ]);
  return { servers, addresses };
}
