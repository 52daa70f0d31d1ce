/**
 * Who has which address, and since when.
 *
 * Giving an address to a server makes a new allocation with an id of its own (a generation); taking it away ends that
 * generation for good. Code that attributes observed traffic to a customer looks up the generation, never the
 * address alone, so a customer never sees the traffic of the address's previous owner.
 */
import { type Actor, reachesTenant } from '#operations/accounts/index.ts';
import type { Hypervisors } from '#operations/hypervisors/index.ts';
import { findReserved, listReserved } from '#operations/views/reserved-address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AddressPool, Allocation, AllocationPage, PageQuery } from './allocation.ts';
import { addPool, listPools, removePool } from './change-pools.ts';
import {
  endAttachments,
  type InTransaction,
  type ReserveInput,
  releaseAddress,
  renameAddress,
  reserveAddress,
} from './reserve-address.ts';
import * as reserved from './reserved-store.ts';
import { forgetNames } from './reverse-name-store.ts';
import * as store from './store.ts';

export type { Allocation } from './allocation.ts';
export { assignHeldAddresses, holdAddresses } from './assign-addresses.ts';
export { isNearlyFull, type PoolUse } from './change-pools.ts';
export {
  attached as addressAttached,
  endAttachments,
  releaseKeptAddresses,
  requireReserved,
} from './reserve-address.ts';
export {
  beginAttachment,
  listDetaching,
  listGuestAddresses,
  setState as setAddressState,
} from './reserved-store.ts';
export {
  findNameToWrite,
  findReverseName,
  noteNameWritten,
  type ReverseName,
  setReverseName,
} from './reverse-name-store.ts';
export { backdateAllocations, deleteHolds as releaseHeldAddresses, ensurePool } from './store.ts';

/** What addresses need from the rest of the program. */
export interface AddressesDeps {
  db: () => Queryable;
  hypervisors: Hypervisors;
  /** Addresses that one account may keep. */
  addressesMax: number;
}

/** Takes all its addresses from a server that is gone; those that its account keeps are available again. */
export async function releaseAddresses(tx: Queryable, serverId: number): Promise<void> {
  await endAttachments(tx, serverId, 'all');
  await forgetNames(tx, await store.endGenerations(tx, serverId));
}

export type Addresses = ReturnType<typeof createAddresses>;

export function createAddresses(deps: AddressesDeps) {
  return {
    /** The cap of one account. */
    addressesMax: deps.addressesMax,
    /** Addresses that the workspace keeps, oldest first; empty for one that the actor does not reach. */
    listReserved: async (actor: Actor, tenantId: number) =>
      reachesTenant(actor, tenantId) ? listReserved(deps.db(), tenantId) : [],
    findReserved: async (actor: Actor, tenantId: number, id: number) =>
      reachesTenant(actor, tenantId) ? findReserved(deps.db(), tenantId, id) : null,
    /** The same with its row locked until the transaction ends. */
    lockReserved: async (tx: Queryable, actor: Actor, tenantId: number, id: number) =>
      reachesTenant(actor, tenantId) ? reserved.lockReserved(tx, tenantId, id) : null,
    reserveAddress: (actor: Actor, input: ReserveInput, onReserved?: InTransaction) =>
      reserveAddress(deps, actor, input, onReserved),
    renameAddress: (
      actor: Actor,
      input: { tenantId: number; id: number; name: string },
      precondition?: InTransaction,
    ) => renameAddress(deps, actor, input, precondition),
    releaseAddress: (actor: Actor, input: { tenantId: number; id: number }, precondition?: InTransaction) =>
      releaseAddress(deps, actor, input, precondition),
    /** Active generations in the order of their ids, after `afterId`, at most `limit`. */
    async listActiveAllocations(query: PageQuery): Promise<AllocationPage> {
      const allocations = await store.listActiveAllocations(deps.db(), query);
      const isLast = allocations.length < query.limit;
      return { allocations, nextAfterId: isLast ? null : (allocations.at(-1)?.id ?? null) };
    },
    /** One generation, active or ended; null when there never was one. */
    async findAllocation(id: number): Promise<Allocation | null> {
      return (await store.findAllocations(deps.db(), [id]))[0] ?? null;
    },
    /** The same inside a transaction: until it ends, the generation neither ends nor changes. */
    lockAllocation: (tx: Queryable, id: number) => store.lockAllocation(tx, id),
    /** Generations of an address at a time, ended ones too, locked like that; at most one in each cluster. */
    lockGenerationsAt: (tx: Queryable, query: { address: string; at: Date; clusterIds: readonly number[] }) =>
      store.lockGenerationsAt(tx, query),
    /** The same of several generations. */
    lockAllocations: (tx: Queryable, ids: readonly number[]) => store.lockAllocations(tx, ids),
    /** The active generations of a server, primary addresses first, locked like that. */
    lockAllocationsOfServer: (tx: Queryable, serverId: number) => store.lockAllocationsOfServer(tx, serverId),
    /** Generations by their ids, active or ended, in any order. */
    findAllocations: (ids: readonly number[]) => store.findAllocations(deps.db(), ids),
    /** Active generations of these servers, primary addresses first. */
    listAllocationsOfServers: (serverIds: readonly number[]) =>
      store.listAllocationsOfServers(deps.db(), serverIds),
    /** Active generations of a server in this tenant, primary addresses first. */
    listAllocationsOf: (of: { serverId: number; tenantId: number }) => store.listAllocationsOf(deps.db(), of),
    /** What each cluster gives addresses out of, or one cluster. Staff only. */
    listPools: (actor: Actor, clusterId: number | null) => listPools(deps.db(), actor, clusterId),
    /** Throws `addresses.invalid` (details.field), `addresses.not_found`. Operators only. */
    addPool: (actor: Actor, pool: AddressPool) => addPool(deps.db(), actor, pool),
    /** Throws `addresses.in_use` once an address was given out of it, `addresses.not_found`. Operators only. */
    removePool: (actor: Actor, poolId: number) => removePool(deps.db(), actor, poolId),
  };
}
