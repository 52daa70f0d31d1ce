import { CodedError } from '#common/errors/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export interface HoldAddressesInput {
  clusterId: number;
  /** The id that the server will have. */
  serverId: number;
  /** Sets of addresses that belong to one guest each: the first set that is free is taken whole. */
  preparedSets: readonly (readonly string[])[];
}

export interface HoldAddressesResult {
  /** Index of the prepared set that was taken, or null when the addresses came out of the pools. */
  preparedSet: number | null;
}

/**
 * Holds one address of each family that the cluster has for a server that is being ordered, inside the caller's
 * transaction; `assignHeldAddresses` or `releaseHeldAddresses` ends the hold.
 *
 * The cluster's pools stay locked until the transaction ends, so two orders never draw the same address. Throws
 * `addresses.exhausted` when a family has none left. Addresses that were never used come first, then those that have
 * rested longest: a recycled address should not meet its former owner's caches.
 */
export async function holdAddresses(tx: Queryable, input: HoldAddressesInput): Promise<HoldAddressesResult> {
  const pools = await store.lockPools(tx, input.clusterId);
  const taken = await takePreparedSet(tx, input, pools);
  if (taken !== null) return taken;
  const held = input.preparedSets.flat();
  const chosen: { pool: store.PoolRow; address: string }[] = [];
  for (const family of [4, 6] as const) {
    const ofFamily = pools.filter((pool) => pool.family === family);
    if (ofFamily.length === 0) continue;
    const drawn = await drawAddress(tx, ofFamily, held);
    if (drawn === null) throw exhausted();
    chosen.push(drawn);
  }
  if (chosen.length === 0) throw exhausted();
  await insertAll(tx, input, chosen);
  return { preparedSet: null };
}

/** Gives the held addresses to the server, whose row exists by now: each becomes a generation of its own. */
export async function assignHeldAddresses(tx: Queryable, server: { serverId: number; tenantId: number }) {
  await store.insertHeldAllocations(tx, server);
  await store.deleteHolds(tx, server.serverId);
}

async function takePreparedSet(
  tx: Queryable,
  input: HoldAddressesInput,
  pools: readonly store.PoolRow[],
): Promise<HoldAddressesResult | null> {
  if (input.preparedSets.length === 0) return null;
  const busy = await store.listBusyAddresses(tx, input.clusterId, input.preparedSets.flat());
  for (const [index, addresses] of input.preparedSets.entries()) {
    if (addresses.some((address) => busy.has(address))) continue;
    const homes = await store.findPoolsOf(tx, input.clusterId, addresses);
    const chosen = addresses.flatMap((address) => {
      const pool = pools.find((candidate) => candidate.id === homes.get(address));
      return pool ? [{ pool, address }] : [];
    });
    if (chosen.length < addresses.length) continue;
    await insertAll(tx, input, chosen);
    return { preparedSet: index };
  }
  return null;
}

/** A free address of the first of these locked pools that has one; null when none has. `held` ones never. */
export async function drawAddress(
  tx: Queryable,
  pools: readonly store.PoolRow[],
  held: readonly string[],
): Promise<{ pool: store.PoolRow; address: string } | null> {
  for (const pool of pools) {
    const address = await store.findFreeAddress(tx, pool.id, held);
    if (address !== null) return { pool, address };
  }
  return null;
}

function insertAll(
  tx: Queryable,
  { clusterId, serverId }: HoldAddressesInput,
  chosen: readonly { pool: store.PoolRow; address: string }[],
): Promise<void> {
  return store.insertHolds(
    tx,
    chosen.map(({ pool, address }, index) => ({
      poolId: pool.id,
      clusterId,
      serverId,
      address,
      isPrimary: index === 0,
    })),
  );
}

function exhausted(): CodedError {
  return new CodedError('addresses.exhausted', 'This location has no free address right now.');
}
