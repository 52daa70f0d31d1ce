/**
 * Who has which address, and since when.
 *
 * Giving an address to a server makes a new allocation with an id of its own (a generation); taking it away ends that
 * generation for good. Code that attributes observed traffic to a customer looks up the generation, never the
 * address alone, so a customer never sees the traffic of the address's previous owner.
 */
import type { Actor } from '#operations/accounts/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { AddressPool, Allocation, AllocationPage, PageQuery } from './allocation.ts';
import { addPool, listPools, removePool } from './change-pools.ts';
import * as store from './store.ts';

export type { Allocation } from './allocation.ts';
export { assignHeldAddresses, holdAddresses } from './assign-addresses.ts';
export { isNearlyFull, type PoolUse } from './change-pools.ts';
export {
  backdateAllocations,
  deleteHolds as releaseHeldAddresses,
  ensurePool,
  releaseAddresses,
} from './store.ts';

export type Addresses = ReturnType<typeof createAddresses>;

export function createAddresses(deps: { db: () => Queryable }) {
  return {
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
