/**
 * Private networks: blocks of private addresses that an account's servers share, isolated from other accounts.
 *
 * All rules for networks are in this feature: which blocks are allowed, how many networks an account may have, that
 * no two of them overlap, that a network with members stays, and that a server without a public address keeps its last
 * network interface. A network of another account, a deleted and an unknown one give the same answer.
 */

import type { Reporter } from '#common/reporter/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import { guestName, type Hypervisors, type PrivateInterface } from '#operations/hypervisors/index.ts';
import {
  type Attachment,
  countNetworks,
  findNetwork,
  hasServer,
  listAttachments,
  listNetworkMembers,
  listNetworks,
  listNicsOf,
  type Network,
  type NetworkFilter,
  type NetworkMember,
} from '#operations/views/network-store.ts';
import type { Scope } from '#operations/views/scope.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { checkJoin, type JoinInput, type JoiningServer } from './add-nic.ts';
import { type AttachInput, attachServer, detachServer } from './attach-server.ts';
import {
  type ChangeNetworkInput,
  changeNetwork,
  deleteNetwork,
  type Precondition,
  syncNetwork,
} from './change-network.ts';
import { type CreateNetworkInput, createNetwork, type OnCreated } from './create-network.ts';
import { driverOf, interfaceOf, isSplit, networkJobs } from './jobs.ts';
import { noSuchServer, scopeOf } from './network.ts';
import * as store from './store.ts';

export { holdNetwork, joinHeldNetwork } from './add-nic.ts';
export { settleNics } from './attach-server.ts';
export { immutableField } from './create-network.ts';
export { memberCapacity } from './network.ts';
export { deleteNicsOf, detachAll, takeHold as releaseHeldNetwork } from './store.ts';

/** Methods with a `tenantId` act within that tenant; null stands for everything that the actor reaches. */
export type Networks = ReturnType<typeof createNetworks>;

export function createNetworks(deps: NetworksDeps) {
  return {
    /** What it does beside the calls. */
    work: { jobHandlers: networkJobs(deps) } satisfies FeatureWork,
    /** The cap of one account. */
    networksMax: deps.networksMax,
    createNetwork: (actor: Actor, input: CreateNetworkInput, onCreated?: OnCreated) =>
      createNetwork(deps, actor, input, onCreated),
    findNetwork: (actor: Actor, tenantId: number | null, id: number) =>
      findNetwork(deps.db(), scopeOf(actor, tenantId), id),
    /** A network with its members, inside a transaction; null when the actor does not reach it. */
    async findNetworkIn(
      tx: Queryable,
      actor: Actor,
      tenantId: number | null,
      id: number,
    ): Promise<{ network: Network; members: NetworkMember[] } | null> {
      const network = await findNetwork(tx, scopeOf(actor, tenantId), id);
      return network && { network, members: await listNetworkMembers(tx, id) };
    },
    /** By address; empty for a network that the actor does not reach. */
    async listMembers(actor: Actor, tenantId: number | null, id: number): Promise<NetworkMember[]> {
      if ((await findNetwork(deps.db(), scopeOf(actor, tenantId), id)) === null) return [];
      return listNetworkMembers(deps.db(), id);
    },
    listNetworks: (actor: Actor, tenantId: number | null, filter: NetworkFilter) =>
      listNetworks(deps.db(), scopeOf(actor, tenantId), filter),
    countNetworks: (actor: Actor, tenantId: number | null, filter: NetworkFilter) =>
      countNetworks(deps.db(), scopeOf(actor, tenantId), filter),
    countOfTenants: (tenantIds: readonly number[]) => store.countOfTenants(deps.db(), tenantIds),
    /** Throws `networks.not_found`. */
    changeNetwork: (
      actor: Actor,
      tenantId: number | null,
      id: number,
      input: ChangeNetworkInput,
      precondition?: Precondition,
    ) => changeNetwork(deps, actor, tenantId, id, input, precondition),
    /** Throws `networks.not_found`, `networks.in_use`. */
    deleteNetwork: (actor: Actor, tenantId: number | null, id: number, precondition?: Precondition) =>
      deleteNetwork(deps, actor, tenantId, id, precondition),
    /** Throws `networks.not_found`. */
    syncNetwork: (actor: Actor, tenantId: number | null, id: number, precondition?: Precondition) =>
      syncNetwork(deps, actor, tenantId, id, precondition),
    /** A server's network interfaces; throws `networks.server_not_found`. */
    async listAttachments(actor: Actor, tenantId: number | null, serverId: number): Promise<Attachment[]> {
      if (!(await hasServer(deps.db(), scopeOf(actor, tenantId), serverId))) throw noSuchServer();
      return listAttachments(deps.db(), [serverId]);
    },
    attachServer: (actor: Actor, tenantId: number | null, input: AttachInput, precondition?: Precondition) =>
      attachServer(deps, actor, tenantId, input, precondition),
    detachServer: (
      actor: Actor,
      tenantId: number | null,
      input: { serverId: number; networkId: number },
      precondition?: Precondition,
    ) => detachServer(deps, actor, tenantId, input, precondition),
    /** Throws what `holdNetwork` would throw now, and changes nothing. */
    checkJoin: (server: Omit<JoiningServer, 'serverId'>, input: JoinInput) => checkJoin(deps, server, input),
    /** The network interfaces of a new guest, without those that would not reach their network; for provisioning. */
    async listInterfaces(serverId: number): Promise<PrivateInterface[]> {
      const found: PrivateInterface[] = [];
      for (const nic of await listNicsOf(deps.db(), { serverId }))
        if (nic.state !== 'detaching' && !(await isSplit(deps, nic))) found.push(interfaceOf(nic));
      return found;
    },
    /** Unplugs every network interface of a server at its hypervisor; for its destruction. */
    async unplugAll(serverId: number) {
      const nics = await listNicsOf(deps.db(), { serverId });
      const driver = nics.length === 0 ? null : await driverOf(deps, serverId);
      for (const nic of nics) await driver?.detachInterface(guestName(serverId), interfaceOf(nic));
    },
  };
}

/** What attaching needs to know of a server. */
interface AttachableServer {
  id: number;
  tenantId: number;
  locationId: number;
  provisioningState: string;
  hasPublicIp: boolean;
}

export interface NetworksDeps {
  db: () => Queryable;
  catalog: Catalog;
  clusters: Clusters;
  hypervisors: Hypervisors;
  /** The server with its row locked until the transaction ends; null for a destroyed one and another's. */
  lockServer: (tx: Queryable, scope: Scope, serverId: number) => Promise<AttachableServer | null>;
  reporter: Reporter;
  /** Networks that one account may have. */
  networksMax: number;
  /** Tells the job runner that there is work. */
  wake: () => void;
}
